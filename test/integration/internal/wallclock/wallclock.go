// Package wallclock changes the wall clock of this process. The monotonic clock, which drives timers, is
// unaffected, as when an administrator sets the clock of a machine.
//
// It works on linux/amd64, in programs that are built with
//
//	-tags clockjumps -ldflags=-checklinkname=0
//
// On this platform, the Go runtime reads both clocks through a vDSO function of the kernel. The package
// replaces the address of this function in a variable of the runtime. The linker flag permits access to the
// variable.
package wallclock
