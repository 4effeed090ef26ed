from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones.reports.html_layout import layered


@st.composite
def graphs(draw: st.DrawFn) -> nx.DiGraph[str]:
    size = draw(st.integers(2, 12))
    names = ["Start", *(f"m{number}" for number in range(size)), "End"]
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(draw(st.permutations(names)))
    graph.add_edges_from(
        draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=40))
    )
    return graph


@given(graphs())
@settings(max_examples=150)
def test_every_layout_has_room_for_each_node_and_a_bend_in_each_layer_between(graph):
    layout = layered(graph)
    assert layout.nodes.keys() == set(graph)
    rows: dict[int, list[float]] = {}
    for layer, place in layout.nodes.values():
        rows.setdefault(layer, []).append(place)
        assert 0 <= layer < layout.layers
        assert -0.001 <= place <= layout.breadth
    for places in rows.values():
        assert all(right - left > 0.99 for left, right in pairwise(sorted(places)))
    for (source, target), bends in layout.bends.items():
        first, last = layout.nodes[source][0], layout.nodes[target][0]
        between = range(first + 1, last) if first < last else range(first - 1, last, -1)
        assert [layer for layer, _ in bends] == list(between)


def test_layers_run_from_start_to_end_and_a_cycle_runs_back_once():
    graph: nx.DiGraph[str] = nx.DiGraph()
    nx.add_path(graph, ["Start", "a", "b", "c", "End"])
    graph.add_edge("c", "a")
    graph.add_edge("Start", "aside")
    layers = {name: layer for name, (layer, _) in layered(graph).nodes.items()}
    assert layers == {"Start": 0, "a": 1, "b": 2, "c": 3, "End": 4, "aside": 1}


def test_lines_that_need_not_cross_do_not():
    graph: nx.DiGraph[str] = nx.DiGraph()
    # In the order of the names the three roads cross.
    for road in ("a3", "b1", "c2"):
        nx.add_path(graph, ["Start", road])
    for left, right in (("a3", "z1"), ("b1", "x3"), ("c2", "y2")):
        nx.add_path(graph, [left, right, "End"])
    place = {name: at for name, (_, at) in layered(graph).nodes.items()}
    first = sorted(("a3", "b1", "c2"), key=place.__getitem__)
    second = sorted(("z1", "x3", "y2"), key=place.__getitem__)
    assert [{"a3": "z1", "b1": "x3", "c2": "y2"}[name] for name in first] == second
