// Command fuzz runs the fuzz tests of modules one after the other, and adds their executions to a file:
//
//	fuzz -time 20s -executions 100000000 \
//	  -results results.json -document reliability.md . ./controllerruntime
//
// It repeats all tests until the total number of executions is reached, including earlier runs with the same
// file of results. Only the coverage of the project and of the packages that read JSON and YAML guides the
// engine. This is much faster than go test -fuzz, which also counts the coverage of client-go. The failing
// input of a test is stored below the package's testdata, so that every later run of the tests repeats it.
// The program then continues with the other tests, and exits with 1. The flag -run selects tests.
package main
