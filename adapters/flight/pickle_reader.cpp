#include "adapters/flight/pickle_reader.hpp"

#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "adapters/flight/limits.hpp"
#include "adapters/flight/pickle_opcodes.hpp"

namespace ringmain::flight {
namespace {

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  /// False with a fault() if it is no pickle of data.
  bool read();
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  [[nodiscard]] Document& document() noexcept { return document_; }

 private:
  using Kind = Value::Kind;

  bool step();
  bool step_number();
  bool step_text();
  bool step_memo();
  bool step_container();

  bool refuse(std::string why) {
    fault_ = "byte " + std::to_string(at_opcode_) + ": " + std::move(why);
    return false;
  }
  [[nodiscard]] std::string name() const { return opcode_name(opcode_); }
  /// An unsigned number of `size` bytes, little endian.
  bool take(std::size_t size, std::uint64_t& number) {
    if (bytes_.size() - at_ < size) return refuse("the file ends within " + name());
    number = 0;
    for (std::size_t i = 0; i < size; ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += size;
    return true;
  }
  bool push(const Value& value) {
    if (stack_.size() >= kValuesMax) return refuse("it holds too many values");
    stack_.push_back(value);
    return true;
  }
  bool push_container(Kind kind) {
    if (document_.containers() >= kContainersMax) {
      return refuse("it holds more than " + std::to_string(kContainersMax) + " lists and dicts");
    }
    return push(document_.make(kind));
  }
  /// Are so many values on the stack, above the last mark?
  bool has(std::size_t count) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    return stack_.size() - floor >= count || refuse(name() + " finds no value");
  }
  bool make_tuple(std::size_t count);
  bool make_from_mark(Kind kind);
  bool add_from_mark(Kind kind);
  bool add_items(const Value& to, std::size_t count);

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t at_opcode_ = 0;
  std::uint8_t opcode_ = 0;
  Document document_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Value> memo_;
  std::size_t values_ = 0;
  bool stopped_ = false;
  std::string fault_;
};

bool PickleReader::read() {
  while (!stopped_) {
    at_opcode_ = at_;
    if (at_ == bytes_.size()) return refuse("the file ends before STOP: it was cut");
    opcode_ = static_cast<std::uint8_t>(bytes_[at_++]);
    if (!step()) return false;
  }
  if (at_ != bytes_.size()) {
    return refuse(std::to_string(bytes_.size() - at_) + " bytes follow the end of the pickle");
  }
  document_.root = stack_.back();
  fault_ = document_.fault();
  return fault_.empty();
}

bool PickleReader::step() {
  std::uint64_t ignored = 0;
  switch (opcode_) {
    case kProto:
      if (!take(1, ignored)) return false;
      return (ignored >= 2 && ignored <= 5) ||
             refuse("it is of protocol " + std::to_string(ignored) + ", and 2 to 5 are known");
    case kFrame:
      return take(8, ignored);
    case kMark:
      if (marks_.size() >= kValuesMax) return refuse("it holds too many marks");
      marks_.push_back(stack_.size());
      return true;
    case kStop:
      if (!marks_.empty() || stack_.size() != 1) {
        return refuse("STOP comes with " + std::to_string(stack_.size()) + " values left, and " +
                      std::to_string(marks_.size()) + " marks; one value was to be left");
      }
      stopped_ = true;
      return true;
    case kBinPut:
    case kLongBinPut:
    case kMemoize:
    case kBinGet:
    case kLongBinGet:
      return step_memo();
    case kBinUnicode:
    case kShortBinUnicode:
    case kBinUnicode8:
      return step_text();
    case kNone:
    case kNewTrue:
    case kNewFalse:
    case kBinInt:
    case kBinInt1:
    case kBinInt2:
    case kLong1:
    case kBinFloat:
      return step_number();
    default:
      return step_container();
  }
}

bool PickleReader::step_number() {
  std::uint64_t number = 0;
  switch (opcode_) {
    case kNone:
      return push({});
    case kNewTrue:
    case kNewFalse:
      return push(Value::of(opcode_ == kNewTrue));
    case kBinInt1:
      return take(1, number) && push(Value::of(static_cast<std::int64_t>(number)));
    case kBinInt2:
      return take(2, number) && push(Value::of(static_cast<std::int64_t>(number)));
    case kBinInt:
      return take(4, number) && push(Value::of(std::int64_t{static_cast<std::int32_t>(number)}));
    case kBinFloat:  // the only number that is big endian
      if (!take(8, number)) return false;
      return push(Value::of(std::bit_cast<double>(__builtin_bswap64(number))));
    default:
      break;
  }
  std::uint64_t size = 0;  // LONG1: two's complement of this many bytes
  if (!take(1, size)) return false;
  if (size > 8) return refuse("LONG1 holds a number of more than 64 bits");
  if (!take(size, number)) return false;
  if (size > 0 && size < 8 && ((number >> (8 * size - 1)) & 1) != 0) {
    number |= ~std::uint64_t{0} << (8 * size);
  }
  return push(Value::of(static_cast<std::int64_t>(number)));
}

bool PickleReader::step_text() {
  const std::size_t width = opcode_ == kBinUnicode ? 4 : opcode_ == kShortBinUnicode ? 1 : 8;
  std::uint64_t size = 0;
  if (!take(width, size)) return false;
  if (size > bytes_.size() - at_) return refuse("the file ends within " + name());
  const std::string_view text = bytes_.substr(at_, size);
  at_ += size;
  return push(Value::of(text));
}

bool PickleReader::step_memo() {
  std::uint64_t place = memo_.size();
  if (opcode_ != kMemoize) {
    const bool one_byte = opcode_ == kBinPut || opcode_ == kBinGet;
    if (!take(one_byte ? 1 : 4, place)) return false;
  }
  if (opcode_ == kBinGet || opcode_ == kLongBinGet) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) {
      return refuse(name() + " asks for place " + std::to_string(place) + ", which is empty");
    }
    return push(found->second);
  }
  if (!has(1)) return false;
  if (memo_.size() >= kMemoMax) return refuse("it keeps too many values to use again");
  memo_[place] = stack_.back();
  return true;
}

bool PickleReader::step_container() {
  switch (opcode_) {
    case kEmptyList:
      return push_container(Kind::list);
    case kEmptyDict:
      return push_container(Kind::dict);
    case kEmptyTuple:
      return push_container(Kind::tuple);
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return make_tuple(opcode_ - kTuple1 + std::size_t{1});
    case kTuple:
      return make_from_mark(Kind::tuple);
    case kList:
      return make_from_mark(Kind::list);
    case kDict:
      return make_from_mark(Kind::dict);
    case kAppend:
      return has(2) && stack_[stack_.size() - 2].kind == Kind::list
                 ? add_items(stack_[stack_.size() - 2], 1)
                 : fault_.empty() && refuse("APPEND finds no list");
    case kSetItem:
      return has(3) && stack_[stack_.size() - 3].kind == Kind::dict
                 ? add_items(stack_[stack_.size() - 3], 2)
                 : fault_.empty() && refuse("SETITEM finds no dict");
    case kAppends:
      return add_from_mark(Kind::list);
    case kSetItems:
      return add_from_mark(Kind::dict);
    default:
      break;
  }
  if (makes_objects(opcode_)) {
    return refuse("the opcode " + name() +
                  " calls code or makes an object, which no dump needs; nothing was executed");
  }
  return refuse("the opcode " + name() + " has no place in a dump of plain data");
}

bool PickleReader::make_tuple(std::size_t count) {
  if (!has(count) || !push_container(Kind::tuple)) return false;
  const Value tuple = stack_.back();
  stack_.pop_back();
  if (!add_items(tuple, count)) return false;
  return push(tuple);
}

bool PickleReader::make_from_mark(Kind kind) {
  if (marks_.empty()) return refuse(name() + " finds no mark");
  if (!push_container(kind)) return false;
  const Value made = stack_.back();
  stack_.pop_back();
  const std::size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  return add_items(made, count) && push(made);
}

bool PickleReader::add_from_mark(Kind kind) {
  if (marks_.empty()) return refuse(name() + " finds no mark");
  const std::size_t from = marks_.back();
  marks_.pop_back();
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (from <= floor || stack_[from - 1].kind != kind) {
    return refuse(name() + " finds no " + (kind == Kind::list ? "list" : "dict"));
  }
  return add_items(stack_[from - 1], stack_.size() - from);
}

/// Moves the uppermost values of the stack into a container.
bool PickleReader::add_items(const Value& container, std::size_t count) {
  const Value to = container;
  if (to.kind == Kind::dict) {
    if (count % 2 != 0) return refuse(name() + " finds a key without a value");
    for (std::size_t i = stack_.size() - count; i < stack_.size(); i += 2) {
      const Value& key = stack_[i];
      if (!key.is_text() && !key.is_whole()) {
        return refuse("a dict has " + std::string(to_string(key.kind)) + " as a key");
      }
    }
  }
  values_ += count;
  if (values_ > kValuesMax) return refuse("it holds too many values");
  auto& items = document_.items_of(to);
  items.insert(items.end(), stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return true;
}

}  // namespace

Result<Document> read_pickle(std::string bytes) {
  if (bytes.size() > kFileBytesMax) {
    return Error{Error::Code::refused,
                 "it is larger than " + std::to_string(kFileBytesMax >> 20) + " MiB"};
  }
  const auto held = std::make_shared<const std::string>(std::move(bytes));
  PickleReader reader(*held);
  if (!reader.read()) return Error{Error::Code::refused, reader.fault()};
  reader.document().hold(held);
  return std::move(reader.document());
}

}  // namespace ringmain::flight
