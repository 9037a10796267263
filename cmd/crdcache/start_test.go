package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram makes the test binary act as the program.
const asProgram = "CRDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runVersion runs "crdcache version" as a process and returns its output.
func runVersion(t testing.TB, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "version")
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("crdcache version: %v\n%s", err, output)
	}
	return string(output)
}

func TestShortCommandsCollectNoGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	if output := runVersion(t, "GODEBUG=gctrace=1"); strings.Contains(output, "gc 1 ") {
		t.Errorf("crdcache version collects garbage:\n%s", output)
	}
	if output := runVersion(t, "GODEBUG=gctrace=1", "GOGC=10"); !strings.Contains(output, "gc 1 ") {
		t.Errorf("GOGC has no effect:\n%s", output)
	}
}

// BenchmarkStart measures a whole process.
func BenchmarkStart(b *testing.B) {
	for _, gogc := range []string{"", "100"} {
		b.Run("GOGC="+gogc, func(b *testing.B) {
			for b.Loop() {
				runVersion(b, "GOGC="+gogc)
			}
		})
	}
}
