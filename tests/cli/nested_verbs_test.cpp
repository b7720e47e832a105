// Can verbs be nested, and does each level work like the first? A small program of its own.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/command_line.hpp"

namespace ringmain::cli {
namespace {

std::vector<std::string> heard;

int take_down(const Arguments& arguments) {
  heard = arguments.operands();
  for (const std::string& value : arguments.values("--only")) heard.push_back("only " + value);
  return kDone;
}

const Verb& program() {
  static const Option kOptions[] = {{"--only", "PATTERN", "what to list"}};
  static const Verb kList{.name = "list",
                          .operands = "FILE…",
                          .summary = "list what a bundle holds",
                          .details = "Lists.",
                          .options = kOptions,
                          .run = take_down};
  static const Verb kCheck{.name = "check",
                           .operands = "",
                           .summary = "check a bundle",
                           .details = "Checks.",
                           .run = take_down};
  static const Verb* const kNested[] = {&kList, &kCheck};
  static const Verb kBundle{.name = "bundle",
                            .operands = "VERB [ARGUMENT…]",
                            .summary = "look into bundles",
                            .details = "Bundles hold recordings.",
                            .verbs = kNested};
  static const Verb* const kVerbs[] = {&kBundle};
  static const Verb kProgram{.name = "",
                             .operands = "VERB [ARGUMENT…]",
                             .summary = "",
                             .details = "A program.",
                             .verbs = kVerbs};
  return kProgram;
}

class NestedVerbsTest : public testing::Test {
 protected:
  int call(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    heard.clear();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = run_command_line(program(), "1.2.3", pointers);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return status;
  }

  std::string out;
  std::string err;
};

TEST_F(NestedVerbsTest, ANestedVerbGetsItsOptionsAndOperands) {
  EXPECT_EQ(call({"bundle", "list", "--only", "-x", "a", "--only=", "list", "--", "--only"}),
            kDone);
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "list", "--only", "only -x", "only "}));
  EXPECT_EQ(out + err, "");
}

TEST_F(NestedVerbsTest, WhatIsWrongIsToldWithThePathToItsHelp) {
  EXPECT_EQ(call({"bundle", "lits"}), kWrongUsage);
  EXPECT_EQ(err,
            "ringmain: there is no verb 'lits'; did you mean 'list'? 'ringmain bundle --help' says "
            "more.\n");
  EXPECT_EQ(call({"bundle", "list", "--olny", "x"}), kWrongUsage);
  EXPECT_EQ(err,
            "ringmain: there is no option '--olny'; did you mean '--only'? 'ringmain bundle list "
            "--help' says more.\n");
  EXPECT_EQ(call({"bundle", "check", "x"}), kWrongUsage);
  EXPECT_EQ(err,
            "ringmain: bundle check takes no operand, and was given 'x'; 'ringmain bundle check "
            "--help' says more.\n");
  EXPECT_EQ(call({"bundle", "--version"}), kWrongUsage) << "only the program has a version";
  EXPECT_EQ(call({"list"}), kWrongUsage) << "a nested verb is known below its own only";
}

TEST_F(NestedVerbsTest, EachLevelListsItsVerbs) {
  EXPECT_EQ(call({"--help"}), kDone);
  EXPECT_NE(out.find("  bundle                   look into bundles\n"), out.npos) << out;
  EXPECT_EQ(out.find("check a bundle"), out.npos) << out;
  EXPECT_EQ(call({"bundle"}), kWrongUsage);
  const std::string usage = err;
  EXPECT_EQ(usage.find("usage: ringmain bundle VERB [ARGUMENT…]\n\nBundles hold recordings.\n"), 0u)
      << usage;
  EXPECT_NE(usage.find("  check                    check a bundle\n"), usage.npos) << usage;
  EXPECT_NE(usage.find("say more about a verb: ringmain bundle help VERB\n"), usage.npos) << usage;
  for (const auto& words :
       {std::vector<std::string>{"help", "bundle"}, {"bundle", "help"}, {"bundle", "--help"}}) {
    EXPECT_EQ(call(words), kDone);
    EXPECT_EQ(out, usage);
  }
}

TEST_F(NestedVerbsTest, HelpOfANestedVerbIsMadeFromItsDeclaration) {
  EXPECT_EQ(call({"bundle", "list", "x", "--help"}), kDone);
  const std::string usage = out;
  EXPECT_EQ(usage,
            "usage: ringmain bundle list [OPTION…] FILE…\n\nLists.\n\noptions:\n"
            "  --only PATTERN           what to list\n"
            "  -h,--help                this text\n");
  EXPECT_EQ(call({"help", "bundle", "list"}), kDone);
  EXPECT_EQ(out, usage);
  EXPECT_EQ(call({"bundle", "help", "list"}), kDone);
  EXPECT_EQ(out, usage);
}

}  // namespace
}  // namespace ringmain::cli
