// Pickles and JSON: what is read, what is refused, what is written.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/flight/document_writer.hpp"
#include "adapters/flight/pickle_opcodes.hpp"
#include "adapters/flight/pickle_reader.hpp"

#include "tests/adapters/flight/flight_hostile.hpp"

namespace ringmain::flight {
namespace {

using namespace std::string_literals;

std::string json_of(std::string pickle) {
  const auto document = read_pickle(std::move(pickle));
  return document ? to_json(document.value()) : "refused: " + document.error().message;
}

TEST(PickleReaderTest, DataOfEveryOpcodeThatPyTorchAndPythonWriteIsRead) {
  EXPECT_EQ(
      json_of("\x80\x02]q\x00(K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x01\x80\x8a\x00\x88\x89Ne."s),
      "[7,513,-1,-128,0,true,false,null]");
  EXPECT_EQ(json_of("\x80\x02}q\x00X\x01\x00\x00\x00"
                    "aq\x01K\x01s."s),
            R"({"a":1})");
  EXPECT_EQ(
      json_of("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00(\x8c\x01x\x94h\x00K\x01K\x02\x86t."s),
      R"(["x","x",[1,2]])");
  EXPECT_EQ(json_of("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), "1.5");
  EXPECT_EQ(json_of("\x80\x02(X\x01\x00\x00\x00kK\x03"
                    "d."s),
            R"({"k":3})");
  EXPECT_EQ(json_of("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s), "-9223372036854775808");
}

TEST(PickleReaderTest, OpcodesThatCallCodeOrMakeObjectsAreRefusedByName) {
  const struct {
    char opcode;
    const char* name;
  } made[] = {{'c', "GLOBAL"}, {'R', "REDUCE"},    {'b', "BUILD"},        {'i', "INST"},
              {'o', "OBJ"},    {'\x81', "NEWOBJ"}, {'\x92', "NEWOBJ_EX"}, {'\x93', "STACK_GLOBAL"},
              {'P', "PERSID"}, {'Q', "BINPERSID"}, {'\x82', "EXT1"},      {'\x83', "EXT2"},
              {'\x84', "EXT4"}};
  for (const auto& [opcode, name] : made) {
    const std::string said = json_of("\x80\x02K\x01"s + opcode + "os\nsystem\n.");
    EXPECT_NE(said.find("byte 4: the opcode "s + name + " calls code or makes an object"),
              std::string::npos)
        << said;
  }
  EXPECT_NE(json_of("\x80\x02\x42\x01\x00\x00\x00x."s).find("BINBYTES has no place"),
            std::string::npos);
  EXPECT_NE(json_of("\x80\x02\xff."s).find("0xff"), std::string::npos);
}

TEST(PickleReaderTest, AListWithinItselfAndOneThatIsUsedAThousandThousandTimesAreRefused) {
  EXPECT_NE(json_of("\x80\x02]q\x00h\x00"
                    "a."s)
                .find("holds itself"),
            std::string::npos);
  std::string doubled = "\x80\x02]q\x00"s;
  for (int level = 0; level < 40; ++level) {  // each list holds the last one twice
    doubled += "](h"s + static_cast<char>(level) + "h" + static_cast<char>(level) + "eq" +
               static_cast<char>(level + 1);
  }
  EXPECT_NE(json_of("\x80\x02("s + doubled.substr(2) + "t.").find("holds more than"),
            std::string::npos);
}

TEST(PickleReaderTest, ATextThatIsUsedTooOftenAndTooManyPlacesOfTheMemoAreRefused) {
  const auto with_text = [](std::size_t times) {
    std::string bytes("\x80\x02](X\0\0\x10\0", 9);
    bytes += std::string(1 << 20, 'x') + std::string("q\1", 2);
    for (std::size_t i = 1; i < times; ++i) bytes += std::string("h\1", 2);
    return read_pickle(bytes + "e.");
  };
  EXPECT_TRUE(with_text(1024));
  const auto refused = with_text(1025);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("MiB of text"), std::string::npos);

  const auto crowded = read_pickle("\x80\x02N" + std::string((1 << 23) + 1, '\x94') + ".");
  ASSERT_FALSE(crowded);
  EXPECT_NE(crowded.error().message.find("too many values to use again"), std::string::npos);
}

TEST(PickleReaderTest, AValueBeforeAMarkIsNotWithinReachOfWhatComesAfterIt) {
  const std::vector<std::string> broken = {
      "\x80\x02](K\x01\x61."s, "\x80\x02}(K\x01s."s, "\x80\x02(u."s,        "\x80\x02u."s,
      "\x80\x02h\x05."s,       "\x80\x02q\x00."s,    "\x80\x02."s,          "\x80\x02K\x01K\x02."s,
      "\x80\x02(K\x01."s,      "\x80\x02}(K\x01u."s, "\x80\x02}(]K\x01u."s, "\x80\x02\x86."s};
  for (const std::string& pickle : broken) {
    EXPECT_EQ(json_of(pickle).substr(0, 13), "refused: byte") << pickle;
  }
}

TEST(PickleReaderTest, AnAppendDoesNotReachAListBelowTheMark) {
  EXPECT_EQ(json_of("\x80\x02](K\x01\x61\x65."s), "refused: byte 6: APPEND finds no value");
}

TEST(PickleReaderTest, BytesAfterTheEndAndOtherProtocolsAreRefused) {
  EXPECT_NE(json_of("\x80\x02N.N."s).find("2 bytes follow"), std::string::npos);
  EXPECT_NE(json_of("\x80\x06N."s).find("protocol 6"), std::string::npos);
  EXPECT_NE(json_of("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s).find("64 bits"),
            std::string::npos);
}

TEST(DocumentWriterTest, AWholeNumberStaysOneAndANumberWithAFractionStaysThat) {
  const std::string json =
      R"({"a":[1,-1,255,256,65535,65536,-2147483649,9223372036854775807],"b":2.0,"c":"\u00e9"})";
  const auto document = read_json(json);
  ASSERT_TRUE(document);
  EXPECT_EQ(json_of(to_pickle(document.value())),
            R"({"a":[1,-1,255,256,65535,65536,-2147483649,9223372036854775807],"b":2.0,"c":"é"})");
}

TEST(DocumentWriterTest, BytesThatAreNoTextOfPythonsBecomeThoseThatSaySo) {
  EXPECT_EQ(to_pickle(read_pickle("\x80\x02X\x02\x00\x00\x00\xffz."s).value()),
            "\x80\x02X\x04\x00\x00\x00\xef\xbf\xbdzq\x00."s);
}

TEST(JsonReaderTest, WhatIsCutDeepOrLargerThanANumberIsRefusedOrKept) {
  EXPECT_NE(read_json("{\"a\": [1, 2").error().message.find("no whole JSON"), std::string::npos);
  EXPECT_FALSE(read_json(std::string(100, '[') + std::string(100, ']')));
  EXPECT_EQ(to_json(read_json("[18446744073709551615]").value()), "[-1]");  // torchcomms' finalize
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

TEST(HostileTest, EveryFileOfTheCorpusCutAnywhereAndWithAnyByteSpoiltIsReadOrRefusedInASentence) {
  std::size_t dumps = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RINGMAIN_CORPUS)) {
    const std::string whole = content(entry.path());
    dumps += try_bytes(whole) ? 1 : 0;
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 400) {
      (void)try_bytes(whole.substr(0, at));
      for (const char byte : {'\0', '\xff', 'h', '(', ']'}) {
        std::string spoilt = whole;
        spoilt[at] = byte;
        (void)try_bytes(spoilt);
      }
    }
  }
  EXPECT_GE(dumps, 5u);  // the corpus holds real ones
}

}  // namespace
}  // namespace ringmain::flight
