// Package print prints what a command has found, as kubectl get does: collections of objects in any format,
// one object at a time, so that memory does not grow with the collection (Printer, Sections); tables whose
// columns the CRD or the API server declares (Rows, RowLoader, Printed); and what differs between two states
// of an object (Compare).
package print
