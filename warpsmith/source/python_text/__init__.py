"""Python texts that are evaluated from their syntax trees and never run."""
