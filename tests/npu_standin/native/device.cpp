// The device itself: memory, streams, events, random numbers, and their registration.
#include "standin.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace standin {
namespace {

// Freed or not yet copied floats read as NaN of every width.
constexpr int kPoison = 0xFF;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct Block {
  c10::DeviceIndex device;
  int64_t bytes;
  c10::StreamId stream;
  std::set<c10::StreamId> used;
  std::set<c10::StreamId> recorded;
};

struct Queue {
  std::deque<std::function<void()>> work;
  uint64_t put = 0;
  uint64_t done = 0;
};

struct Counters {
  int64_t allocated = 0;
  int64_t peak = 0;
};

struct State {
  std::recursive_mutex mutex;
  std::unordered_map<const void*, Block> blocks;
  std::map<const void*, int64_t> pinned;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, Queue> queues;
  std::vector<Counters> counters;
  std::vector<at::Generator> generators;
  c10::StreamId next_stream = 1;
  int64_t hazards = 0;
  bool used = false;
  bool forked = false;
};

State& state() {
  // Leaked: tensors that outlive static destruction still free their blocks.
  static auto* only = new State();
  return *only;
}

thread_local c10::DeviceIndex tls_device = 0;
thread_local std::map<c10::DeviceIndex, c10::StreamId> tls_streams;

using Lock = std::lock_guard<std::recursive_mutex>;

void check_usable() {
  TORCH_CHECK(
      !state().forked,
      "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must "
      "use the 'spawn' start method");
  if (!state().used) {
    state().used = true;
    pthread_atfork(nullptr, nullptr, [] { state().forked = true; });
  }
}

int64_t total_bytes() {
  return from_environment("NPU_STANDIN_MEMORY", int64_t(4) << 30);
}

void check_room(c10::DeviceIndex index, int64_t bytes) {
  const auto allocated = state().counters[index].allocated;
  TORCH_CHECK_WITH(
      OutOfMemoryError, allocated + bytes <= total_bytes(), "NPU out of memory. Tried to allocate ",
      bytes, " bytes (NPU ", int(index), "; ", total_bytes(), " bytes total capacity; ", allocated,
      " bytes already allocated)");
}

void charge(const void* address, c10::DeviceIndex index, int64_t bytes) {
  auto& here = state().counters[index];
  here.allocated += bytes;
  here.peak = std::max(here.peak, here.allocated);
  state().blocks[address] = Block{index, bytes, current_stream(index).id(), {}, {}};
}

void discharge(const void* address) {
  Lock lock(state().mutex);
  auto found = state().blocks.find(address);
  if (found == state().blocks.end()) {
    return;
  }
  const Block& block = found->second;
  for (auto stream : block.used) {
    if (stream != block.stream && block.recorded.count(stream) == 0) {
      state().hazards += 1;
    }
  }
  state().counters[block.device].allocated -= block.bytes;
  state().blocks.erase(found);
}

void free_block(void* address) {
  discharge(address);
  std::free(address);
}

void free_pinned(void* address) {
  {
    Lock lock(state().mutex);
    state().pinned.erase(address);
  }
  std::free(address);
}

void free_adopted(void* context) {
  auto* memory = static_cast<c10::Storage*>(context);
  discharge(memory->data());
  delete memory;
}

void* host_memory(size_t bytes) {
  void* address = nullptr;
  TORCH_CHECK(posix_memalign(&address, 64, std::max<size_t>(bytes, 1)) == 0, "host memory is full");
  return address;
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    check_usable();
    const auto index = current_device();
    const c10::Device device(kNpu, index);
    if (bytes == 0) {
      return {nullptr, nullptr, &free_block, device};
    }
    Lock lock(state().mutex);
    check_room(index, static_cast<int64_t>(bytes));
    void* address = host_memory(bytes);
    charge(address, index, static_cast<int64_t>(bytes));
    std::memset(address, kPoison, bytes);
    return {address, address, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* address = host_memory(bytes);
    Lock lock(state().mutex);
    state().pinned[address] = static_cast<int64_t>(bytes);
    return {address, address, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// Draws come from a CPU engine, but the generator says it lives on the device: a CPU seed that
// was meant for the device, or the reverse, then changes nothing and the test sees it.
struct Generator final : c10::GeneratorImpl {
  at::Generator engine;

  Generator(c10::DeviceIndex index, at::Generator engine_in)
      : GeneratorImpl(
            c10::Device(kNpu, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        engine(std::move(engine_in)) {}
  void set_current_seed(uint64_t seed) override {
    engine.set_current_seed(seed);
  }
  void set_offset(uint64_t) override {
    TORCH_CHECK(false, "the stand-in has no generator offset");
  }
  uint64_t get_offset() const override {
    TORCH_CHECK(false, "the stand-in has no generator offset");
  }
  uint64_t current_seed() const override {
    return engine.current_seed();
  }
  uint64_t seed() override {
    return engine.seed();
  }
  void set_state(const c10::TensorImpl& saved) override {
    engine.unsafeGetGeneratorImpl()->set_state(saved);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return engine.unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override {
    return new Generator(device_.index(), engine.clone());
  }
};

struct Event {
  c10::Stream stream;
  uint64_t put;
};

void run_until(const c10::Stream& stream, uint64_t put) {
  Lock lock(state().mutex);
  auto& queue = state().queues[{stream.device_index(), stream.id()}];
  while (queue.done < put && !queue.work.empty()) {
    auto work = std::move(queue.work.front());
    queue.work.pop_front();
    queue.done += 1;
    work();
  }
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kNpu;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override {
    return {kNpu, current_device()};
  }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) {
      set_current_device(device.index());
    }
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) {
      tls_device = device.index();
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.has_index() ? device.index() : current_device());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device);
  }
  c10::Stream getNewStream(c10::Device device, int = 0) const override {
    Lock lock(state().mutex);
    const c10::Device on(kNpu, device.has_index() ? device.index() : current_device());
    return c10::Stream(c10::Stream::UNSAFE, on, state().next_stream++);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto old = current_stream(stream.device_index());
    tls_streams[stream.device_index()] = stream.id();
    return old;
  }
  bool queryStream(const c10::Stream& stream) const override {
    Lock lock(state().mutex);
    return state().queues[{stream.device_index(), stream.id()}].work.empty();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    run_stream(stream);
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    run_device(index < 0 ? current_device() : index);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag)
      const override {
    Lock lock(state().mutex);
    const auto put = state().queues[{stream.device_index(), stream.id()}].put;
    delete static_cast<Event*>(*event);
    *event = new Event{stream, put};
  }
  void block(void* event, const c10::Stream&) const override {
    synchronizeEvent(event);
  }
  bool queryEvent(void* event) const override {
    Lock lock(state().mutex);
    auto* recorded = static_cast<Event*>(event);
    const auto key = std::make_pair(recorded->stream.device_index(), recorded->stream.id());
    return state().queues[key].done >= recorded->put;
  }
  void synchronizeEvent(void* event) const override {
    auto* recorded = static_cast<Event*>(event);
    if (recorded != nullptr) {
      run_until(recorded->stream, recorded->put);
    }
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    Lock lock(state().mutex);
    auto found = state().blocks.find(data.get());
    if (found != state().blocks.end()) {
      found->second.recorded.insert(stream.id());
    }
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return device_count();
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    set_current_device(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto old = current_device();
    set_current_device(index);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  bool isPinnedPtr(const void* address) const override {
    return is_pinned(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index < 0 ? current_device() : index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(
        index < 0 ? current_device() : index, at::detail::createCPUGenerator());
  }
  at::Device getDeviceFromPtr(void*) const override {
    return {kNpu, current_device()};
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto memory = allocator()->allocate(bytes);
    const auto kept = std::min(bytes, storage.nbytes());
    if (kept > 0) {
      std::memcpy(memory.get(), storage.data(), kept);
    }
    storage.unsafeGetStorageImpl()->set_data_ptr(std::move(memory));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

const bool registered = [] {
  state().counters.resize(device_count());
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    state().generators.push_back(
        at::make_generator<Generator>(index, at::detail::createCPUGenerator()));
  }
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::SetAllocator(kNpu, allocator());
  return true;
}();

}  // namespace

c10::DeviceIndex device_count() {
  static const auto count = from_environment("NPU_STANDIN_DEVICES", 2);
  return static_cast<c10::DeviceIndex>(count);
}

c10::DeviceIndex current_device() {
  return tls_device;
}

void set_current_device(c10::DeviceIndex index) {
  TORCH_CHECK(
      index >= 0 && index < device_count(), "Invalid device ID ", int(index), ": there are ",
      int(device_count()), " NPUs");
  tls_device = index;
}

c10::Allocator* allocator() {
  static DeviceAllocator only;
  return &only;
}

c10::Allocator* pinned_allocator() {
  static PinnedAllocator only;
  return &only;
}

bool is_pinned(const void* address) {
  Lock lock(state().mutex);
  auto next = state().pinned.upper_bound(address);
  if (next == state().pinned.begin()) {
    return false;
  }
  --next;
  return static_cast<const char*>(address) <= static_cast<const char*>(next->first) + next->second;
}

c10::DataPtr adopt(c10::Storage memory, c10::DeviceIndex index) {
  check_usable();
  const c10::Device device(kNpu, index);
  void* address = memory.mutable_data();
  if (address == nullptr) {
    return {nullptr, nullptr, &free_block, device};
  }
  Lock lock(state().mutex);
  check_room(index, static_cast<int64_t>(memory.nbytes()));
  charge(address, index, static_cast<int64_t>(memory.nbytes()));
  return {address, new c10::Storage(std::move(memory)), &free_adopted, device};
}

c10::Stream current_stream(c10::DeviceIndex index) {
  const auto found = tls_streams.find(index);
  const auto id = found == tls_streams.end() ? c10::StreamId(0) : found->second;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNpu, index), id);
}

void put_on_stream(const c10::Stream& stream, std::function<void()> work) {
  Lock lock(state().mutex);
  auto& queue = state().queues[{stream.device_index(), stream.id()}];
  queue.work.push_back(std::move(work));
  queue.put += 1;
}

void run_stream(const c10::Stream& stream) {
  run_until(stream, std::numeric_limits<uint64_t>::max());
}

void run_device(c10::DeviceIndex index) {
  Lock lock(state().mutex);
  std::vector<c10::StreamId> ids;
  for (const auto& entry : state().queues) {
    if (entry.first.first == index) {
      ids.push_back(entry.first.second);
    }
  }
  for (auto id : ids) {
    run_stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kNpu, index), id));
  }
}

void note_use(const c10::Storage& storage, const c10::Stream& stream) {
  Lock lock(state().mutex);
  auto found = state().blocks.find(storage.data());
  if (found != state().blocks.end()) {
    found->second.used.insert(stream.id());
  }
}

void record_stream(const c10::Storage& storage, const c10::Stream& stream) {
  Guard().recordDataPtrOnStream(storage.data_ptr(), stream);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  return state().generators.at(index);
}

at::Generator engine_of(const at::Generator& generator) {
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->engine;
}

// Read by the Python side of the stand-in.
std::vector<int64_t> memory_of(int64_t index) {
  Lock lock(state().mutex);
  const auto& here = state().counters.at(index);
  return {here.allocated, here.peak, total_bytes() - here.allocated, total_bytes()};
}

void reset_peak(int64_t index) {
  Lock lock(state().mutex);
  state().counters.at(index).peak = state().counters.at(index).allocated;
}

int64_t stream_hazards() {
  Lock lock(state().mutex);
  return state().hazards;
}

bool in_fork() {
  return state().forked;
}

}  // namespace standin
