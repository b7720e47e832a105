// A sink that hears events of any type and writes each channel to a CSV file of its own: the names
// of the fields with their units in the first line, then a line for each event.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include <ringmain/adapters/registry.hpp>
#include <ringmain/bus/bus.hpp>
#include <ringmain/bus/fields.hpp>

class Csv final : public ringmain::registry::Sink {
 public:
  explicit Csv(std::string_view folder) : folder_(folder) {}  // what follows "csv:"
  void hear(const ringmain::EventView& event) override {
    const auto [found, is_new] = files_.try_emplace(std::string(event.channel()));
    std::ofstream& file = found->second;
    if (is_new) {
      file.open(folder_ / (found->first + ".csv"));
      file << "time_ns,publisher,sequence";
      for (const ringmain::FieldView field : ringmain::fields_of(event)) {
        file << ',' << field.name();
        if (field.unit() != ringmain::Unit::none) file << " [" << to_string(field.unit()) << ']';
      }
    }
    const ringmain::Stamp& stamp = event.stamp();
    file << '\n' << stamp.time_ns << ',' << stamp.publisher << ',' << stamp.sequence;
    for (const ringmain::FieldView field : ringmain::fields_of(event))
      field.visit([&file](auto value) { write(file << ',', value); });
  }
  ringmain::Result<bool> close() override {
    for (auto& [channel, file] : files_) {
      file << '\n';
      file.close();
      if (!file) return ringmain::Error{ringmain::Error::Code::system, channel + " is not whole"};
    }
    return true;
  }

 private:
  static void write(std::ostream& to, auto number) { to << number; }
  static void write(std::ostream& to, std::string_view text) { to << std::quoted(text, '"', '"'); }
  static void write(std::ostream& to, ringmain::Enumerator one) {
    one.word ? write(to, *one.word) : write(to, one.value);
  }
  std::filesystem::path folder_;
  std::map<std::string, std::ofstream> files_;
};

enum class Outcome : std::uint8_t { fell, rose };
struct Step {
  std::uint64_t number;
  double seconds;
  ringmain::Text<32> note;
  Outcome loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  using ringmain::field, ringmain::Unit;
  return ringmain::event("train.step", field<&Step::number>("number", Unit::id),
                         field<&Step::seconds>("seconds"), field<&Step::note>("note"),
                         field<&Step::loss>("loss", "fell,rose"));
}

int main(int argc, char** argv) {
  using namespace ringmain::registry;
  const std::string folder = argc > 1 ? argv[1] : ".";
  if (!Registry::process().add(sink_provider<Csv>({.argument = "FOLDER"}))) return 1;

  ringmain::Bus bus;
  auto csv = attach_sink(bus, "csv:" + folder, "train.*");
  if (!csv) return 1;
  bus.channel<Step>().post({1, 0.5, {"warm-up"}, Outcome::fell});
  bus.channel<Step>().post({2, 0.25, {"said \"fast\", was"}, Outcome::rose});
  if (!bus.flush(std::chrono::seconds(10)) || !csv.value().close()) return 1;
  std::ifstream written(std::filesystem::path(folder) / "train.step.csv");
  for (std::string line; std::getline(written, line);) std::printf("%s\n", line.c_str());
  return 0;
}
