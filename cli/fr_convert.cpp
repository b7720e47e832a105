// `ringmain fr convert`: a dump in JSON becomes a pickle, and the reverse.
#include <cstdio>
#include <string>

#include "adapters/flight/convert.hpp"
#include "adapters/flight/json_reader.hpp"

#include "cli/fr_output.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

/// Fills `format`; false if there is none by this name.
bool read_format(const std::string& name, flight::DumpFormat& format) {
  format = name == "json" ? flight::DumpFormat::json : flight::DumpFormat::pickle;
  return name == "json" || name == "pickle";
}

int run(const Arguments& arguments) {
  if (arguments.operands().size() != 1) {
    return wrong_usage("fr convert", "it wants one file: ringmain fr convert FILE -o OUTPUT");
  }
  const std::string& file = arguments.operands().front();
  const std::string output = arguments.value("-o").value_or("-");
  if (output.empty()) return wrong_usage("fr convert", "-o wants a file: -o FILE");
  auto bytes = flight::read_dump_bytes(file);
  if (!bytes) return nothing_judged(file + ": " + bytes.error().message);
  const bool is_pickle = bytes.value().starts_with('\x80');
  auto format = is_pickle ? flight::DumpFormat::json : flight::DumpFormat::pickle;
  if (const auto name = arguments.value("--to"); name && !read_format(*name, format)) {
    return wrong_usage("fr convert", "--to is json or pickle, and not '" + *name + "'" +
                                         did_you_mean(*name, {"json", "pickle"}));
  }
  auto document = flight::read_document(std::move(bytes).value());
  if (!document) return nothing_judged(file + ": " + document.error().message);
  flight::Kept kept;
  if (const auto dump = flight::read_dump(document.value(), kept); !dump) {
    return nothing_judged(file + " is no dump: " + dump.error().message);
  }
  flight::shape_for(document.value(), format);
  std::string made = flight::write_document(document.value(), format);
  if (format == flight::DumpFormat::json) made += "\n";
  const std::string fault = write_whole(output, made);
  return fault.empty() ? kDone : failed(fault);
}

}  // namespace

const Verb& fr_convert_verb() {
  static const Option kOptions[] = {
      {"-o", "FILE",
       "write there, whole or not at all, in place of standard output; its folder is made if it\n"
       "is missing"},
      {"--to", "FORMAT", "json or pickle; without it, the other one than the file is",
       "json pickle"}};
  static const Verb kVerb{
      "convert",
      "FILE",
      "turn one dump into JSON or into a pickle",
      "All fields stay, also those that are not known. What the two formats of PyTorch have\n"
      "differently is written as each has it. A pickle has data opcodes only, and is read by\n"
      "PyTorch's fr_trace if its name is PREFIX and the rank.\n\n"
      "exit status: 0; 1 where it could not be written; 2 where the file is no dump, or for a "
      "wrong\n"
      "call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
