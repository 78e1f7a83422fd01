// Operators of the stand-in. A few need kernels of their own (memory, views, copies, convolution);
// all others run their CPU kernel on aliases of the same memory, after the checks that a real
// device makes.
#include "standin.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorImpl.h>
#include <torch/library.h>

#include <cstring>
#include <optional>
#include <unordered_map>

namespace standin {

std::vector<int64_t> memory_of(int64_t index);
void reset_peak(int64_t index);
int64_t stream_hazards();
bool in_fork();

namespace {

bool is_npu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kNpu;
}

at::Tensor tensor_on(
    const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  auto* impl = result.unsafeGetTensorImpl();
  impl->set_storage_offset(like.storage_offset());
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return result;
}

void release_storage(void* context) {
  delete static_cast<c10::Storage*>(context);
}

// A CPU tensor over the memory of a tensor of the device.
at::Tensor host_alias(const at::Tensor& tensor) {
  const auto& storage = tensor.storage();
  c10::DataPtr memory(
      storage.mutable_data(), new c10::Storage(storage), &release_storage,
      c10::Device(c10::DeviceType::CPU));
  c10::Storage alias(
      c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(memory),
      c10::GetAllocator(c10::DeviceType::CPU), /*resizable=*/true);
  return tensor_on(alias, c10::DispatchKey::CPU, tensor);
}

// One operator that runs its CPU kernel.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, torch::jit::Stack* stack) : op_(op), stack_(stack) {}

  void run() {
    const auto& schema = op_.schema();
    const auto count = schema.arguments().size();
    const auto first = stack_->size() - count;
    for (size_t i = 0; i < count; ++i) {
      find_device((*stack_)[first + i]);
    }
    TORCH_CHECK(device_.has_value(), "the stand-in cannot tell the device of ", schema.name());
    for (size_t i = 0; i < count; ++i) {
      check_device((*stack_)[first + i]);
    }
    const auto stream = current_stream(device_->index());
    run_stream(stream);
    for (size_t i = 0; i < count; ++i) {
      to_host((*stack_)[first + i], schema.arguments()[i], stream);
    }
    {
      c10::DeviceGuard on(*device_);
      at::AutoDispatchBelowADInplaceOrView below;
      // `torch.autocast("cpu")` must not reach the kernels of another device.
      c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
      carry_back_resizes();
      const auto returns = schema.returns().size();
      for (size_t i = stack_->size() - returns; i < stack_->size(); ++i) {
        to_device((*stack_)[i]);
      }
    }
  }

 private:
  struct Swap {
    at::Tensor original;
    at::Tensor alias;
    const void* memory;
  };

  void find_device(const c10::IValue& value) {
    if (value.isTensor()) {
      meet(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        meet(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        if (tensor.has_value()) {
          meet(*tensor);
        }
      }
    } else if (value.isDevice() && value.toDevice().type() == kNpu && !device_.has_value()) {
      const auto device = value.toDevice();
      device_ = c10::Device(kNpu, device.has_index() ? device.index() : current_device());
    }
  }

  void meet(const at::Tensor& tensor) {
    if (is_npu(tensor) && !device_.has_value()) {
      device_ = tensor.device();
    }
  }

  void check_device(const c10::IValue& value) {
    if (value.isTensor()) {
      check(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        check(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        if (tensor.has_value()) {
          check(*tensor);
        }
      }
    }
  }

  void check(const at::Tensor& tensor) {
    // A number arrives as a CPU tensor without dimensions, on every device.
    if (!tensor.defined() || tensor.device() == *device_ || tensor.dim() == 0) {
      return;
    }
    TORCH_CHECK(
        false, "Expected all tensors to be on the same device, but found at least two devices, ",
        *device_, " and ", tensor.device(), "! (when calling ", op_.schema().name(), ")");
  }

  at::Tensor alias_of(const at::Tensor& tensor, const c10::Stream& stream) {
    if (!is_npu(tensor)) {
      return tensor;
    }
    for (const auto& swap : swaps_) {
      if (swap.original.is_same(tensor)) {
        return swap.alias;
      }
    }
    note_use(tensor.storage(), stream);
    auto alias = host_alias(tensor);
    swaps_.push_back({tensor, alias, alias.storage().data()});
    return alias;
  }

  void to_host(c10::IValue& value, const c10::Argument& argument, const c10::Stream& stream) {
    if (value.isTensor()) {
      value = alias_of(value.toTensor(), stream);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> aliases;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        aliases.push_back(alias_of(tensor, stream));
      }
      value = aliases;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> aliases;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        aliases.push_back(
            tensor.has_value() ? std::optional<at::Tensor>(alias_of(*tensor, stream))
                               : std::nullopt);
      }
      value = aliases;
    } else if (value.isDevice()) {
      value = c10::Device(c10::DeviceType::CPU);
    } else if (value.isGenerator()) {
      value = engine_for(value.toGenerator());
    } else if (value.isNone() && *argument.type() == *optional_generator()) {
      value = engine_of(default_generator(device_->index()));
    }
  }

  static const c10::TypePtr& optional_generator() {
    static const c10::TypePtr type = c10::OptionalType::create(c10::GeneratorType::get());
    return type;
  }

  at::Generator engine_for(const at::Generator& generator) {
    TORCH_CHECK(
        generator.device().type() == kNpu, "Expected a 'npu' device type for generator but found '",
        generator.device().type(), "'");
    return engine_of(generator);
  }

  // `out=` and `resize_` may have moved an alias to other memory or given it another shape.
  void carry_back_resizes() {
    for (auto& swap : swaps_) {
      auto* impl = swap.original.unsafeGetTensorImpl();
      if (swap.alias.storage().data() != swap.memory) {
        auto* storage = swap.original.storage().unsafeGetStorageImpl();
        const auto bytes = swap.alias.storage().nbytes();
        storage->set_data_ptr(adopt(swap.alias.storage(), device_->index()));
        storage->set_nbytes(bytes);
      }
      if (swap.alias.sizes() != swap.original.sizes() ||
          swap.alias.strides() != swap.original.strides()) {
        impl->set_storage_offset(swap.alias.storage_offset());
        impl->set_sizes_and_strides(swap.alias.sizes(), swap.alias.strides());
      }
    }
  }

  void to_device(c10::IValue& value) {
    if (value.isTensor()) {
      value = on_device(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        tensors.push_back(on_device(tensor));
      }
      value = tensors;
    }
  }

  at::Tensor on_device(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != c10::DeviceType::CPU) {
      return tensor;
    }
    for (const auto& swap : swaps_) {
      if (swap.alias.is_same(tensor)) {
        return swap.original;
      }
      if (swap.alias.storage().is_alias_of(tensor.storage())) {
        return tensor_on(swap.original.storage(), c10::DispatchKey::PrivateUse1, tensor);
      }
    }
    auto* key = tensor.storage().unsafeGetStorageImpl();
    auto found = adopted_.find(key);
    if (found == adopted_.end()) {
      const auto bytes = tensor.storage().nbytes();
      c10::Storage storage(
          c10::Storage::use_byte_size_t(), bytes, adopt(tensor.storage(), device_->index()),
          allocator(), /*resizable=*/true);
      found = adopted_.emplace(key, storage).first;
    }
    return tensor_on(found->second, c10::DispatchKey::PrivateUse1, tensor);
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack* stack_;
  std::optional<c10::Device> device_;
  std::vector<Swap> swaps_;
  std::unordered_map<const void*, c10::Storage> adopted_;
};

void host_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  HostCall(op, stack).run();
}

c10::DeviceGuard guard_of(std::optional<c10::Device> device) {
  const c10::Device asked = device.value_or(c10::Device(kNpu));
  return c10::DeviceGuard({kNpu, asked.has_index() ? asked.index() : current_device()});
}

at::Tensor empty(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const auto guard = guard_of(device);
  return at::detail::empty_generic(
      size, allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const auto guard = guard_of(device);
  return at::detail::empty_strided_generic(
      size, stride, allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype));
}

void copy_now(const at::Tensor& from, const at::Tensor& to) {
  at::AutoDispatchBelowADInplaceOrView below;
  to.copy_(from);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  TORCH_CHECK(from.sizes() == to.sizes(), "_copy_from needs equal sizes");
  const auto stream = current_stream((is_npu(to) ? to : from).device().index());
  for (const at::Tensor& tensor : {from, to}) {
    if (is_npu(tensor)) {
      note_use(tensor.storage(), stream);
    }
  }
  const auto source = is_npu(from) ? host_alias(from) : from;
  const auto target = is_npu(to) ? host_alias(to) : to;
  const bool upload = !is_npu(from) && is_pinned(from.storage().data());
  const bool download = !is_npu(to);
  if (non_blocking && (upload || download)) {
    if (download && to.is_contiguous()) {
      std::memset(to.mutable_data_ptr(), 0xFF, to.nbytes());
    }
    put_on_stream(stream, [source, target] { copy_now(source, target); });
    return to;
  }
  run_stream(stream);
  if (is_npu(from) && is_npu(to) && from.device() != to.device()) {
    run_stream(current_stream(from.device().index()));
  }
  copy_now(source, target);
  return to;
}

at::Tensor& set_to(
    at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
    at::IntArrayRef stride) {
  TORCH_CHECK(
      source.device().type() == kNpu, "Attempted to set the storage of a tensor on device \"",
      self.device(), "\" to a storage on different device \"", source.device(), "\"");
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.size() == size.size()) {
    impl->set_sizes_and_strides(size, stride);
  } else {
    impl->set_sizes_contiguous(size);
  }
  return self;
}

at::Tensor& set_to_storage(at::Tensor& self, at::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_to(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_to_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_to(
      self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_to_nothing(at::Tensor& self) {
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, allocator(), true);
  return set_to(self, none, 0, {0}, {});
}

void record_tensor(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage(), stream);
}

// The CPU kernel draws from the CPU's generator, because the operator has no generator argument.
std::tuple<at::Tensor, at::Tensor> native_dropout(
    const at::Tensor& input, double p, std::optional<bool> train) {
  auto mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (!train.value_or(true)) {
    mask.fill_(true);
    return {input.clone(), mask};
  }
  mask.bernoulli_(1 - p);
  return {input.mul(mask).mul_(p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

// ATen sends convolutions of a device that it does not know to these two operators.
std::vector<c10::IValue> call_on_host(const char* name, std::vector<c10::IValue> stack) {
  host_fallback(c10::Dispatcher::singleton().findSchemaOrThrow(name, ""), &stack);
  return stack;
}

at::Tensor convolution(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups) {
  return call_on_host(
             "aten::convolution",
             {input, weight, bias, stride, padding, dilation, transposed, output_padding, groups})
      .at(0)
      .toTensor();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const std::vector<int64_t> bias_sizes{grad.size(1)};
  const c10::List<bool> mask({wanted[0], wanted[1], wanted[2]});
  const auto results = call_on_host(
      "aten::convolution_backward",
      {grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
       groups, mask});
  const auto at_index = [&](size_t i) {
    return results[i].isNone() ? at::Tensor() : results[i].toTensor();
  };
  return {at_index(0), at_index(1), at_index(2)};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&host_fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
  library.impl("_copy_from", copy_from);
  library.impl("set_.source_Storage_storage_offset", set_to);
  library.impl("set_.source_Storage", set_to_storage);
  library.impl("set_.source_Tensor", set_to_tensor);
  library.impl("set_", set_to_nothing);
  library.impl("record_stream", record_tensor);
  library.impl("native_dropout", native_dropout);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
  // torch_npu has kernels of its own for these, so a probe for fused optimizers finds them.
  for (const char* name : {"_fused_sgd_", "_fused_adamw_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&host_fallback>());
  }
}

TORCH_LIBRARY(npu_standin, library) {
  library.def("device_count() -> int", [] { return int64_t(device_count()); });
  library.def("current_device() -> int", [] { return int64_t(current_device()); });
  library.def("set_device(int index) -> ()", [](int64_t index) {
    set_current_device(static_cast<c10::DeviceIndex>(index));
  });
  library.def("synchronize(int index) -> ()", [](int64_t index) {
    run_device(static_cast<c10::DeviceIndex>(index));
  });
  library.def("default_generator(int index) -> Generator?", [](int64_t index) {
    return default_generator(static_cast<c10::DeviceIndex>(index));
  });
  library.def("memory_of(int index) -> int[]", memory_of);
  library.def("reset_peak(int index) -> ()", reset_peak);
  library.def("stream_hazards() -> int", stream_hazards);
  library.def("in_fork() -> bool", in_fork);
}

}  // namespace
}  // namespace standin
