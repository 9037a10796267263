// Package run plans the experiments and runs them: one child process after the other, against sandboxes that
// it starts, fills, changes and removes.
//
// A child is a new process of this program. It reads its task from standard input, and writes the result to
// standard output. It ends when its standard input ends, and so with its parent.
package run
