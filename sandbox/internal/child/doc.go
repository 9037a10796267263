// Package child starts processes that cannot outlive the one that started them.
//
// Two independent mechanisms are used. A pipe on the child's standard input,
// which the parent never writes to, reads end-of-file the moment the parent is
// gone, however it went; that works on every system but needs the child's
// cooperation ([ExitWithParent]). On Linux the kernel can also signal the child
// ([Start] sets Pdeathsig), which needs no cooperation.
package child
