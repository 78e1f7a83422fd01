// Autocast of the device, by the operator lists that ATen gives every accelerator, less those
// that torch_npu leaves out. Boxed kernels, because a template instance for each operator would
// take a minute to compile.
#include "standin.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <string>

namespace standin {
namespace {

using c10::DispatchKey;

template <class Change>
void change_tensors(c10::ArrayRef<c10::Argument> arguments, torch::jit::Stack* stack, Change change) {
  const auto first = stack->size() - arguments.size();
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor() && value.toTensor().defined()) {
      value = change(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> changed;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        changed.push_back(change(tensor));
      }
      value = changed;
    }
  }
}

void call_with(const c10::OperatorHandle& op, torch::jit::Stack* stack, at::ScalarType dtype) {
  change_tensors(op.schema().arguments(), stack, [dtype](const at::Tensor& tensor) {
    return at::autocast::cached_cast(dtype, tensor, kNpu);
  });
  op.callBoxed(stack);
}

void low(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard off(DispatchKey::AutocastPrivateUse1);
  call_with(op, stack, at::autocast::get_autocast_dtype(kNpu));
}

void full(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard off(DispatchKey::AutocastPrivateUse1);
  call_with(op, stack, at::kFloat);
}

// The inputs stay as they are; the result is asked for in float32 unless the caller chose.
void full_result(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard off(DispatchKey::AutocastPrivateUse1);
  const auto& arguments = op.schema().arguments();
  const auto first = stack->size() - arguments.size();
  const bool eligible = (*stack)[first].isTensor() &&
      at::autocast::is_eligible((*stack)[first].toTensor(), kNpu);
  for (size_t i = 0; eligible && i < arguments.size(); ++i) {
    if (arguments[i].name() == "dtype" && (*stack)[first + i].isNone()) {
      (*stack)[first + i] = at::kFloat;
    }
  }
  op.callBoxed(stack);
}

void widest(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard off(DispatchKey::AutocastPrivateUse1);
  auto dtype = at::autocast::get_autocast_dtype(kNpu);
  change_tensors(op.schema().arguments(), stack, [&dtype](const at::Tensor& tensor) {
    if (at::autocast::is_eligible(tensor, kNpu) && tensor.scalar_type() == at::kFloat) {
      dtype = at::kFloat;
    }
    return tensor;
  });
  call_with(op, stack, dtype);
}

std::string qualified(const char* name) {
  return name;
}

std::string qualified(const char* name, const char* overload) {
  return std::string(name) + "." + overload;
}

bool left_out(const std::string& name) {
  return name == "rms_norm" || name.find("upsample") != std::string::npos;
}

void refuse_cross_entropy(const c10::OperatorHandle&, torch::jit::Stack*) {
  TORCH_CHECK(
      false, "binary_cross_entropy is unsafe to autocast; use binary_cross_entropy_with_logits");
}

#define STANDIN_TEXT_1(a) qualified(#a)
#define STANDIN_TEXT_2(a, b) qualified(#a, #b)
#define STANDIN_PICK(a, b, macro, ...) macro
#define STANDIN_TEXT(...) \
  STANDIN_PICK(__VA_ARGS__, STANDIN_TEXT_2, STANDIN_TEXT_1, unused)(__VA_ARGS__)
#define STANDIN_REGISTER(policy, ...)                                       \
  if (const auto name = STANDIN_TEXT(__VA_ARGS__); !left_out(name)) {       \
    library.impl(                                                           \
        name.c_str(), torch::CppFunction::makeFromBoxedFunction<&policy>()); \
  }
#define STANDIN_LOW(...) STANDIN_REGISTER(low, __VA_ARGS__)
#define STANDIN_FULL(...) STANDIN_REGISTER(full, __VA_ARGS__)
#define STANDIN_FULL_RESULT(...) STANDIN_REGISTER(full_result, __VA_ARGS__)
#define STANDIN_WIDEST(...) STANDIN_REGISTER(widest, __VA_ARGS__)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  AT_FORALL_LOWER_PRECISION_FP(STANDIN_LOW)
  AT_FORALL_FP32(STANDIN_FULL)
  AT_FORALL_FP32_SET_OPT_DTYPE(STANDIN_FULL_RESULT)
  AT_FORALL_PROMOTE(STANDIN_WIDEST)
  library.impl("norm.Scalar", torch::CppFunction::makeFromBoxedFunction<&full>());
  library.impl("norm.ScalarOpt_dim", torch::CppFunction::makeFromBoxedFunction<&full>());
  library.impl(
      "binary_cross_entropy", torch::CppFunction::makeFromBoxedFunction<&refuse_cross_entropy>());
}

}  // namespace
}  // namespace standin
