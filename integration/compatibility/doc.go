// Command compatibility reads the output of "go test -json" of a run against one version of Kubernetes and
// writes what came of it into a section of a document:
//
//	go test -json ./... | compatibility -server "Kubernetes 1.30.14" -document compatibility.md
//
// It prints the output of tests that fail, and ends with 1 if any did.
package main
