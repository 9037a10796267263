// Command compatibility summarizes the output of "go test -json" for one version of Kubernetes in a section
// of a document:
//
//	go test -json ./... | compatibility -server "Kubernetes 1.30.14" -document compatibility.md
//
// With -versions it runs the tests of the library's modules with several versions of Kubernetes' modules, and
// writes a table. With -platforms it type-checks a module for other platforms.
//
// It prints the output of failed tests, and exits with 1 if a test failed.
package main
