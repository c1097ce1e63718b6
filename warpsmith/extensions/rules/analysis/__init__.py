"""Proofs about a kernel: bounds, loops, accesses, side effects. Reads syntax trees and edits nothing."""
