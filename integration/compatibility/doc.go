// Command compatibility summarizes the output of "go test -json" for one version of Kubernetes in a section
// of a document:
//
//	go test -json ./... | compatibility -server "Kubernetes 1.30.14" -document compatibility.md
//
// It prints the output of failed tests, and exits with 1 if a test failed.
package main
