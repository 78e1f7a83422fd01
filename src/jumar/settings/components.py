"""Parts of a recipe that come in several kinds, each with its own fields."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from jumar.ground.errors import UserError
from jumar.settings.fields import field_names, not_a_choice

C = TypeVar("C", bound="Component")


@dataclass(frozen=True, kw_only=True)
class Component:
    """A part of a recipe that comes in several kinds: an optimizer, a schedule, a loss.

    A direct subclass is a family. A subclass of the family with `kind="name"`, in this package or
    in a user's own module, is one of its kinds, and is available from then on:
    `--set optimizer=name --set optimizer.its_field=0.8`. All are frozen dataclasses.

    Attributes:
        kind: The name of the kind.
        kinds: The kinds of the family, by name.
    """

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, *, kind: str = "") -> None:
        super().__init_subclass__()
        if Component in cls.__bases__:
            cls.kinds = {}
        if not kind:
            return
        existing_class = cls.kinds.get(kind)
        if existing_class is not None and existing_class.__module__ != cls.__module__:
            raise UserError(
                f"'{kind}' already exists, in {existing_class.__module__}",
                where=f"{cls.__module__}.{cls.__qualname__}",
                todo="Choose another name.",
            )
        cls.kind = kind
        cls.kinds[kind] = cls

    def of_kind(self: C, kind: str, *, path: str, where: str) -> C:
        """Another kind of the family, keeping the values of the fields that both kinds have.

        Args:
            kind: The name of the other kind.
            path: The path of the part in the recipe, for error messages.
            where: The option or file that requests the kind.

        Raises:
            UserError: There is no such kind.
        """
        if kind not in self.kinds:
            raise not_a_choice(path, kind, tuple(self.kinds), where=where)
        if kind == self.kind:
            return self
        target_class = self.kinds[kind]
        shared_fields = set(field_names(target_class)) & set(field_names(self))
        return target_class(**{name: getattr(self, name) for name in shared_fields})

    @classmethod
    def kinds_with(cls, field: str) -> list[str]:
        """The kinds of the family that have a field of this name."""
        return [kind for kind, subclass in cls.kinds.items() if field in field_names(subclass)]
