"""Model a crowded bin of a Java `HashMap`: a red-black tree that iterates as a linked list.

What it decides: in which order the keys of such a bin are met. Java keeps the keys in a list besides the tree, and
three rules shape it: a new key comes right after its parent in the tree; when the tree has a new root, that key moves
to the front; a bin that is turned into a tree, or split by a growing table, starts from the list it had. So the
rotations reach the order.

A key that is taken out leaves the list, and the tree is rebalanced as red-black trees are; then too a new root moves
to the front. When few keys are left, by its topmost nodes, the tree is given up and the list stays.

Constraints: keys are distinct and ordered: by hash, and where hashes are equal by the keys.

Example: nine keys of ascending hash, made into a tree, leave the fourth as root, which is walked first:

    >>> tree = TreeBin.of((number, b"") for number in range(1, 10))
    >>> [number for number, _ in tree.order]
    [4, 1, 2, 3, 5, 6, 7, 8, 9]

Left out: keys of equal hash that are not Comparable, such as the `Optional` racks of the
striped placer, are ordered in Java by the objects' addresses; here by the strings.

Source: java.util.HashMap.TreeNode (treeify, putTreeVal, moveRootToFront, balanceInsertion, removeTreeNode,
balanceDeletion), Java 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

TreeKey: TypeAlias = tuple[int, bool, bytes]
"""What orders keys: signed hash, whether there is a string at all, the string's UTF-16 units."""


@attrs.define(eq=False)
class TreeNode:
    """Hold one key of the tree; a new node is a red leaf."""

    key: TreeKey
    parent: TreeNode | None = None
    children: list[TreeNode | None] = attrs.field(factory=lambda: [None, None])  # Lesser, greater.
    red: bool = True


@attrs.define(eq=False)
class TreeBin:
    """Hold the keys in iteration order, and the tree over them."""

    order: list[TreeKey]
    root: TreeNode | None = None

    @classmethod
    def of(cls, keys: Iterable[TreeKey]) -> TreeBin:
        """Return the tree bin that Java's treeify builds from a list of keys. Cost: n log n."""
        tree = cls(list(keys))
        for key in tree.order:
            tree._insert(key)
        tree._move_root_to_front()
        return tree

    def add(self, key: TreeKey) -> None:
        """Insert a key. Cost: linear, to find the key's place in the iteration order."""
        parent = self._insert(key)
        assert parent is not None, "a tree bin is never empty"
        # putTreeVal links a new node into the list right behind its parent in the tree, not at the end.
        self.order.insert(self.order.index(parent.key) + 1, key)
        self._move_root_to_front()

    def remove(self, key: TreeKey) -> bool:
        """Remove a key; return whether the bin is still a tree, and if not, keep only the list. Cost: linear."""
        node = self._find(key)
        self.order.remove(key)
        assert self.root is not None
        left, right = self.root.children
        # removeTreeNode: a tree this small goes back to a list (untreeify). Java looks before it removes the node
        # from the tree, so the test is on the tree that still holds the key.
        if left is None or right is None or left.children[0] is None:
            return False
        if node.children[0] is not None and node.children[1] is not None:
            # Its place is taken by the next greater key, which has one child at most and goes instead.
            successor = node.children[1]
            while successor.children[0] is not None:
                successor = successor.children[0]
            node.key = successor.key
            node = successor
        child = node.children[0] if node.children[0] is not None else node.children[1]
        if child is not None:
            self._replace(node, child)
        if not node.red:
            self._rebalance(node if child is None else child)
        if child is None:
            self._replace(node, None)
        self._move_root_to_front()
        return True

    def _find(self, key: TreeKey) -> TreeNode:
        node = self.root
        while node is not None and node.key != key:
            node = node.children[key > node.key]
        assert node is not None, "only keys that are there are taken out"
        return node

    def _replace(self, node: TreeNode, child: TreeNode | None) -> None:
        """Put `child`, or nothing, in the place of `node`."""
        if node.parent is None:
            self.root = child
        else:
            node.parent.children[int(node.parent.children[1] is node)] = child
        if child is not None:
            child.parent = node.parent

    def _rebalance(self, node: TreeNode) -> None:
        """Restore the black height of the paths through `node`, which have lost a black node."""
        while node is not self.root and not node.red:
            parent = node.parent
            assert parent is not None
            side = int(parent.children[1] is node)
            sibling = parent.children[1 - side]
            assert sibling is not None, "the other side has a black node more"
            if sibling.red:
                # The sibling is made black by a rotation first; the cases below need a black one.
                sibling.red, parent.red = False, True
                self._rotate(parent, side)
                sibling = parent.children[1 - side]
                assert sibling is not None, "a red node's children are black nodes"
            near, far = sibling.children[side], sibling.children[1 - side]
            if not (near is not None and near.red) and not (far is not None and far.red):
                # Nobody can lend a red node: the loss moves one level up.
                sibling.red = True
                node = parent
                continue
            if far is None or not far.red:
                assert near is not None
                # Only the near nephew is red: a rotation makes it the far one.
                near.red, sibling.red = False, True
                self._rotate(sibling, 1 - side)
                sibling, far = near, sibling
            sibling.red, parent.red, far.red = parent.red, False, False
            self._rotate(parent, side)
            return
        node.red = False

    def _move_root_to_front(self) -> None:
        assert self.root is not None
        # moveRootToFront: the bin's first node has to be the root, or look-ups would begin in the wrong place.
        self.order.remove(self.root.key)
        self.order.insert(0, self.root.key)

    def _insert(self, key: TreeKey) -> TreeNode | None:
        """Insert the key, rebalance, and return the node that became its parent; None for an empty tree."""
        parent, below = None, self.root
        while below is not None:
            parent, below = below, below.children[key > below.key]
        node = TreeNode(key, parent)
        if parent is not None:
            parent.children[key > parent.key] = node
        self._balance(node)
        return parent

    def _balance(self, node: TreeNode) -> None:
        while node.parent is not None and node.parent.red and node.parent.parent is not None:
            parent, grandparent = node.parent, node.parent.parent
            side = int(grandparent.children[1] is parent)
            uncle = grandparent.children[1 - side]
            # Both parents of this level are red: recolour, and the conflict moves two levels up.
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                node = grandparent
                continue
            # An inner grandchild is turned into an outer one first.
            if parent.children[1 - side] is node:
                self._rotate(parent, side)
                node, parent = parent, node
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, 1 - side)
        if node.parent is None:
            self.root = node
            node.red = False

    def _rotate(self, node: TreeNode, side: int) -> None:
        """Rotate: `node` sinks to `side` (0 left, 1 right) and its other child takes its place."""
        rising = node.children[1 - side]
        assert rising is not None, "only a node with a child on the other side sinks"
        passed = rising.children[side]
        node.children[1 - side] = passed
        if passed is not None:
            passed.parent = node
        rising.parent = node.parent
        if node.parent is None:
            self.root = rising
        else:
            node.parent.children[int(node.parent.children[1] is node)] = rising
        rising.children[side] = node
        node.parent = rising
