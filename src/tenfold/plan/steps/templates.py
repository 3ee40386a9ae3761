"""Templates: planning is skipped for graphs that equal a planned one but for their sizes.

A graph is found by its structure (`steps/structure`). Where a structure comes back, a template of
its outline is made (`steps/template`), from which other sizes get theirs. A plan depends on its
graph alone: it is the same with and without templates, whatever was met before.

What is planned in full each time: ops of the user's, whose scopes take their places; compositions
that bring scopes; very large graphs. Rounds of loops are found anew in each graph, since literals
have a say in them. Scopes are graphs of their own, with templates of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tenfold.graph import Graph
from tenfold.graph.op import Inline, Table
from tenfold.locks import Lock
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.passes.expand import expand
from tenfold.plan.passes.hoist import may_hoist
from tenfold.plan.passes.needless import may_leave_out_carries
from tenfold.plan.passes.overwritten import may_leave_out
from tenfold.plan.passes.reroll.reroll import repeats
from tenfold.plan.passes.row_blocks import may_block
from tenfold.plan.passes.write_out import Found, note, rewritten
from tenfold.plan.steps.outline import Outline
from tenfold.plan.steps.structure import Structure, structure_of
from tenfold.plan.steps.template import Template
from tenfold.stats import count

LARGE = 20_000  # nodes of a graph that is planned in full
EACH = 8  # templates of a structure: of more the first is dropped
VAIN = 4  # templates one after another that hold for no further sizes: then no more are made
NODES = 1 << 16  # of all structures and templates that are kept: some 1.3 KB each


class Templates:
    """The templates for one table and one backend's capabilities, the least recently used dropped.

    A structure that is met for the first time is remembered; its template is made when it comes
    back, since making one takes longer than a plan does.
    """

    def __init__(self, table: Table, capabilities: Capabilities) -> None:
        self.table = table
        self.capabilities = capabilities
        self._known: OrderedDict[Any, _Known] = OrderedDict()
        self._weight = 0  # nodes of these
        self._lock = Lock()

    def find(self, graph: Graph) -> Outline | None:
        """The outline of a graph, unless it has to be planned in full."""
        if len(graph.nodes) > LARGE:
            return None
        structure = structure_of(graph, self.table)
        known = self._seen(structure.key, graph)
        if known is None:
            return None
        looped: Graph = graph
        loops: Found = ()
        if known.repeats(graph, self.table):
            looped, loops = rewritten(graph, self.table, self.capabilities)
            if looped is not graph:
                structure = structure_of(looped, self.table)
                known = self._seen(("rerolled", structure.key), looped)
                if known is None:
                    return None
        found = known.at(looped, structure, loops, self)
        if found is not None:
            note(graph, self.table, self.capabilities, found.graph, loops)
        return found

    def _seen(self, key: Any, graph: Graph) -> _Known | None:
        """What is known of a structure; None if it is new."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            known = self._known[key] = _Known(len(graph.nodes))
            self._weigh(known, known.nodes)
            return None

    def add(self, known: _Known, template: Template) -> None:
        """Keep one more template of a structure."""
        assert known.templates is not None
        with self._lock:
            known.templates.append(template)
            if len(known.templates) > EACH:
                del known.templates[0]
            else:
                self._weigh(known, known.nodes)
        count("templates")

    def _weigh(self, known: _Known, nodes: int) -> None:
        if known.dropped:  # whoever has found it goes on with it
            return
        known.weight += nodes
        self._weight += nodes
        while self._weight > NODES and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            gone.dropped = True
            self._weight -= gone.weight


class _Known:
    """A structure that was met before, and its templates so far; None where it can't have any."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.templates: list[Template] | None = []
        self.weight = 0  # nodes, its templates' too
        self.dropped = False
        self._vain = 0  # templates, the last ones, that held for no further sizes
        self._repeats: bool | None = None
        self._making = Lock()

    def repeats(self, graph: Graph, table: Table) -> bool:
        """Whether graphs of this structure may have updates or carries to be left out, loops to be
        found, products to be hoisted or rows to be blocked."""
        if self._repeats is None:
            found = may_leave_out(graph, table) or repeats(graph, table)
            found = found or may_hoist(graph, table) or may_leave_out_carries(graph, table)
            self._repeats = found or may_block(graph, table)
        return self._repeats

    def at(self, graph: Graph, structure: Structure, loops: Found, of: Templates) -> Outline | None:
        """The outline of a graph by a template, which is made if none holds for its sizes."""
        found = self._found(graph, structure, loops)
        if found is not None or self._vain == VAIN:
            return found
        with self._making:  # one thread makes it, the others wait and find it
            found = self._found(graph, structure, loops)
            if found is not None or self.templates is None or self._vain == VAIN:
                return found
            if not self.templates and _declined(graph, of.table):
                self.templates = None
                return None
            made = Template(graph, structure, of.table, of.capabilities)
            of.add(self, made)
            self._vain += 1
        return made.at(graph, structure.sizes, loops)

    def _found(self, graph: Graph, structure: Structure, loops: Found) -> Outline | None:
        for template in tuple(self.templates or ())[::-1]:
            found = template.at(graph, structure.sizes, loops)
            if found is not None:
                self._vain = 0
                return found
        return None


def _declined(graph: Graph, table: Table) -> bool:
    """Whether graphs of this structure are planned in full."""
    if any(isinstance(table[node.op].lowering, Inline) for node in graph.nodes):
        return True
    before, after = (
        sum(bool(node.scopes) for node in one.nodes) for one in (graph, expand(graph, table))
    )
    return before != after


_every: dict[tuple[int, Capabilities], Templates] = {}


def templates_of(table: Table, capabilities: Capabilities) -> Templates:
    """The templates by a table for a backend's capabilities, in this process."""
    key = id(table), capabilities
    return _every.get(key) or _every.setdefault(key, Templates(table, capabilities))
