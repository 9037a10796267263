// Package guard keeps promises that no single package can keep alone. It holds tests only:
//
//   - the cost of importing the library, and its forbidden dependencies (imports_test.go)
//   - which of our packages may import the expensive ones (layers_test.go)
//   - which way imports go: never from the engine up, never in a circle through the command
//     (direction_test.go)
//   - the content of the root go.mod, which the workspace must not change (modules_test.go)
//   - documentation, examples and size of every package (packages_test.go)
//   - that no public signature needs a type of an internal package (signatures_test.go)
//   - how large each folder is, how wide lines are, and how many names are exported (size_test.go)
//   - that comments name only things that exist (names_test.go)
//   - which files exist, and that none names a path of a machine (tree_test.go)
//
// Each guard is a function from plain values to a list of violations, and each has a test that feeds it a
// violation: a guard that cannot fail guards nothing. The rest of a guard collects the values from the go
// command and the files.
package guard
