// Package run plans the experiments and makes them: one child process after the other, against sandboxes
// that it starts, fills, changes and removes.
//
// A child is this program, started again with a task on its standard input; what it found out comes from
// its standard output. It ends with its parent, however that ends, because its standard input does.
package run
