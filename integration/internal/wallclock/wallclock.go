// Package wallclock makes the clock on the wall jump, for this process alone. The monotonic clock, by which
// timers run, goes on as before, as it does when somebody sets the clock of a machine.
//
// Clocks can jump on linux/amd64, in programs that are built with
//
//	-tags clockjumps -ldflags=-checklinkname=0
//
// There Go reads both clocks through a function that the kernel provides, whose address the runtime keeps in
// a variable. The package puts one of its own in that place. The linker lets it have the variable because of
// the flag.
package wallclock
