"""A rule's input: the module, the kinds of its expressions, and the options of the port."""

import ast

from jumar.porting.edits import Confidence, Remark, Severity, Text
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.changes import Notice, Replacement, Rewrite
from jumar.porting.script.kinds import Kinds
from jumar.porting.script.module import Module

NPU_INIT = "npu_bridge.npu_init"


class View:
    """A module as a rule sees it.

    Args:
        module: Names, scopes and spans.
        options: The port's options.
        originally_empty: The tests of `if` statements that do nothing in the original script.
    """

    def __init__(
        self, module: Module, options: PortOptions, originally_empty: frozenset[str] = frozenset()
    ) -> None:
        self.module = module
        self.options = options
        self.originally_empty = originally_empty
        self.kinds = Kinds(module)
        self._locals: dict[str, str] = {}

    def npu(self, name: str) -> str:
        """The local name of a name of `npu_bridge.npu_init` in this module.

        If it is not imported yet, this is the name under which it will be: unchanged, unless the
        script uses that name for something else.
        """
        if name not in self._locals:
            self._locals[name] = self._local(name)
        return self._locals[name]

    def has(self, name: str) -> bool:
        """Whether a name of `npu_bridge.npu_init` is imported at the top of the module."""
        scope = self.module.scopes.module
        return NPU_INIT in scope.stars or self._imported_as(name) is not None

    def session_config(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The function that adds the NPU options to a session's configuration.

        Returns:
            Its name in the module, and the imports and functions of a `Rewrite` that calls it.
        """
        if self.options.has_session_options:
            return "npu_session_config", ("npu_config_proto",), ("npu_session_config",)
        return self.npu("npu_config_proto"), ("npu_config_proto",), ()

    def is_npu(self, node: ast.expr) -> bool:
        """Whether an expression calls the NPU package, or a function added by a port."""
        if not isinstance(node, ast.Call):
            return False
        name = self.module.name_of(node.func) or ""
        return name.startswith("npu_bridge.") or name.endswith(":npu_session_config")

    def rewrite(
        self,
        node: ast.AST,
        *replacements: Replacement,
        reason: Text,
        confidence: Confidence = "certain",
        imports: tuple[str, ...] = (),
        functions: tuple[str, ...] = (),
    ) -> Rewrite:
        """Shorthand for a `Rewrite`."""
        return Rewrite(
            node=node,
            replacements=replacements,
            reason=reason,
            confidence=confidence,
            imports=imports,
            functions=functions,
        )

    def notice(
        self,
        node: ast.AST,
        remark: Remark,
        *,
        todo: Text | None = None,
        severity: Severity | None = None,
        confidence: Confidence | None = None,
    ) -> Notice:
        """A `Notice` with a remark; the other arguments replace parts of it."""
        todo = todo or remark.todo
        own_remark = Remark(
            en=remark.en,
            zh=remark.zh,
            todo_en=todo.en,
            todo_zh=todo.zh,
            severity=severity or remark.severity,
            confidence=confidence or remark.confidence,
        )
        return Notice(node=node, remark=own_remark)

    def _local(self, name: str) -> str:
        local_name = self._imported_as(name)
        if local_name is not None:
            return local_name
        if NPU_INIT in self.module.scopes.module.stars:
            return name
        return f"{name}_of_npu" if self.module.scopes.binds(name) else name

    def _imported_as(self, name: str) -> str | None:
        for local, bindings in self.module.scopes.module.bindings.items():
            for binding in bindings:
                if binding.kind == "import" and binding.member == name:
                    full = self.module.exported(local, frozenset())
                    if full in (f"{NPU_INIT}.{name}", f"npu_bridge.{name}"):
                        return local
        return None
