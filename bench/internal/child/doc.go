// Package child runs one experiment in a process of its own: the program starts itself again with a task on
// standard input and reads what the new process found out from its standard output.
//
// A child ends with its parent, however that ends, because its standard input does.
package child
