// Package follow prints the objects of types and then what happens to them: it is what the verb watch and the
// flag --watch of dump have in common.
//
// Types are followed by what they are called, for as long as the command runs: those that come later and that
// a wildcard, a category or a name stands for are taken up, and those that go are said to be gone.
package follow
