// The stand-in `npu` keeps its tensors in host memory, so a CPU kernel can work on them through
// an alias without a copy. What makes it a device of its own is what it refuses and what it
// delays: tensors of two devices in one operator, work on a stream that nobody waited for,
// more memory than it has, use in a forked process.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>

namespace standin {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;

c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

// Memory of one device; allocation counts against its size and may raise OutOfMemoryError.
c10::Allocator* allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

// A block of the device that takes over memory which a CPU kernel has allocated.
c10::DataPtr adopt(c10::Storage memory, c10::DeviceIndex index);

// Streams run what is put on them only when somebody waits: an operator on the same stream, an
// event, a synchronisation. Stream 0 of a device is its default stream.
c10::Stream current_stream(c10::DeviceIndex index);
void put_on_stream(const c10::Stream& stream, std::function<void()> work);
void run_stream(const c10::Stream& stream);
void run_device(c10::DeviceIndex index);

// Bookkeeping that finds a missing Tensor.record_stream: a block that is freed after a stream
// other than its own has used it, and nobody recorded that stream.
void note_use(const c10::Storage& storage, const c10::Stream& stream);
void record_stream(const c10::Storage& storage, const c10::Stream& stream);

const at::Generator& default_generator(c10::DeviceIndex index);
// The CPU generator that draws for a generator of the device.
at::Generator engine_of(const at::Generator& generator);

}  // namespace standin
