// Package print prints objects as kubectl get does, one object at a time, so that memory does not grow with
// their number (Printer, Sections). It prints tables with the columns of a CRD or of the API server
// (Rows, LoadRows, TableClient), and the differences between two states of an object (Compare).
package print
