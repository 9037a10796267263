// Package statemetrics compares the metrics of index configs with the program kube-state-metrics.
package statemetrics

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// The flags name the program and its sources. "make statemetrics" sets them.
var (
	programFlag = flag.String("kube-state-metrics", "", "program of kube-state-metrics; the tests are skipped without it")
	sourcesFlag = flag.String("kube-state-metrics-sources", "", "folder of its module")
)

func TestMain(m *testing.M) { harness.Main(m) }

// patience limits every wait.
const patience = 3 * time.Minute

func requireProgram(t *testing.T) {
	t.Helper()
	if *programFlag == "" {
		t.Skip("make statemetrics builds kube-state-metrics and runs this test")
	}
}

// exporter is a running program with metrics.
type exporter struct {
	address string
	process *os.Process
}

// start runs a program until the end of the test, and returns its output.
func start(t *testing.T, program string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	folder, err := os.MkdirTemp("", "sm") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	command.Env = append(os.Environ(), "HOME="+folder, "XDG_RUNTIME_DIR="+folder, "KUBECONFIG=")
	output, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGINT)
		_ = command.Wait()
		writer.Close()
		os.RemoveAll(folder)
	})
	return command, output
}

// startKubeStateMetrics runs kube-state-metrics for a config.
func startKubeStateMetrics(t *testing.T, kubeconfig, config string) exporter {
	t.Helper()
	var ports []string
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports = append(ports, fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
		listener.Close()
	}
	command, output := start(t, *programFlag, "--custom-resource-state-only", "--kubeconfig="+kubeconfig,
		"--custom-resource-state-config-file="+config, "--host=127.0.0.1", "--telemetry-host=127.0.0.1",
		"--port="+ports[0], "--telemetry-port="+ports[1])
	go func() { _, _ = io.Copy(io.Discard, output) }() // ended by the cleanup of start
	return exporter{"http://127.0.0.1:" + ports[0] + "/metrics", command.Process}
}

var metricsAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`)

// startCrdcache runs crdcache serve with the converted config.
func startCrdcache(t *testing.T, kubeconfig, config string) exporter {
	t.Helper()
	converted := filepath.Join(t.TempDir(), "converted.yaml")
	if err := os.WriteFile(converted, []byte(convert(t, config)), 0o600); err != nil {
		t.Fatal(err)
	}
	command, output := start(t, harness.Crdcache(t), "serve", "--kubeconfig="+kubeconfig, "--config="+converted,
		"--metrics-address=127.0.0.1:0", "--all-namespaces", "--idle=0")
	lines, text := bufio.NewScanner(output), strings.Builder{}
	for lines.Scan() {
		fmt.Fprintln(&text, lines.Text())
		if address := metricsAddress.FindString(lines.Text()); address != "" {
			go func() { _, _ = io.Copy(io.Discard, output) }() // ended by the cleanup of start
			return exporter{address, command.Process}
		}
	}
	t.Fatalf("crdcache serve ended:\n%s", text.String())
	return exporter{}
}

// convert converts a config of kube-state-metrics with crdcache.
func convert(t *testing.T, file string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), harness.Crdcache(t), "import", "kube-state-metrics", file)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}

// series are values by name and labels. Values of equal labels are added up, as crdcache does.
type series map[string]float64

// scrape reads the series.
func (e exporter) scrape(t *testing.T) (series, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, %w", response.StatusCode, err)
	}
	// the parser does not know the types info and stateset
	text := regexp.MustCompile("(?m)^#.*\n").ReplaceAll(body, nil)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	out := series{}
	for name, family := range families {
		if strings.HasPrefix(name, "crdcache_") {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // an empty label is no label
					labels = append(labels, " "+l.GetName()+"="+l.GetValue())
				}
			}
			slices.Sort(labels)
			out[name+strings.Join(labels, "")] += m.GetUntyped().GetValue()
		}
	}
	return out, nil
}

// await scrapes until the series have the current versions of the objects and no others, and once more,
// because an object can arrive during a scrape.
func (e exporter) await(t *testing.T, versions []string) series {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for isComplete := false; ; {
		found, err := e.scrape(t)
		var seen []string
		for name := range found {
			if version := seenVersion.FindStringSubmatch(name); version != nil {
				seen = append(seen, version[1])
				delete(found, name)
			}
		}
		slices.Sort(seen)
		if err == nil && slices.Equal(seen, versions) {
			if isComplete {
				return found
			}
			isComplete = true
			continue
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s has the versions %q (%v), want %q", e.address, seen, err, versions)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
