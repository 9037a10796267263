// Command fuzz runs the fuzz tests of modules, one after the other, and adds up what they have executed:
//
//	fuzz -time 20s -executions 100000000 \
//	  -results results.json -document reliability.md . ./controllerruntime
//
// It goes over all of them again until the number of executions is reached, adding to what earlier runs with
// the same file of results came to. The coverage of the project's packages, and of those that read JSON and
// YAML, guides it, which is many times faster than go test -fuzz, where that of client-go counts as well. The
// input of a test that fails is kept below the package's testdata, where every run of its tests tries it
// again. The program goes on with the other tests then, and ends with 1. With -run it goes over some of the
// tests alone.
package main
