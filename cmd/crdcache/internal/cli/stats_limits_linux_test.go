//go:build !race

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRecommendedLimits verifies that a process with the recommended GOMEMLIMIT exceeds it by less than the
// tenth that the container's limit adds, while it lists the objects again and they change. The race detector
// needs more memory.
func TestRecommendedLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := newCluster(t)
	filled := func(n, round int) *unstructured.Unstructured {
		spec := map[string]any{"note": strings.Repeat(fmt.Sprintf("%d of %d; ", n, round), 200)}
		return newObject("Gizmo", "web", fmt.Sprint("filled", n), spec)
	}
	for n := range relistObjectCount {
		server.Create(t, gizmos, filled(n, 0))
	}
	_, l := recommendedLimits(t, server, "--limit", "0")
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), relistEnv+"="+server.URL, fmt.Sprint("GOMEMLIMIT=", l.GoMemoryLimit))
	program.Stderr = os.Stderr
	stdin, err := program.StdinPipe()
	must(t, err)
	stdout, err := program.StdoutPipe()
	must(t, err)
	must(t, program.Start())
	answers := bufio.NewScanner(stdout)
	for round := range 3 {
		for n := range 500 {
			server.Update(t, gizmos, filled(n, round+1))
		}
		if _, err := fmt.Fprintln(stdin); err != nil || !answers.Scan() {
			t.Fatalf("the process ended: %v, %v", err, answers.Err())
		}
		kibibytes, err := strconv.ParseInt(answers.Text(), 10, 64)
		if limit := l.GoMemoryLimit * 11 / 10 >> 10; err != nil || kibibytes <= 0 || kibibytes > limit {
			t.Errorf("round %d: the process has used %d KiB, want at most %d: %v", round, kibibytes, limit, err)
		}
	}
	_ = stdin.Close() // ends the process
	_, _ = io.Copy(io.Discard, stdout)
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
}
