// Package files_test compares questions about files with jq and with a live server. Make installs jq.
package files_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m, startAudit) }

const pods, files, certificates, rounds = 20_000, 10_000, 50_000, 3

// podOf returns a Pod in JSON, in a namespace with eight characters.
func podOf(t *testing.T, n int) []byte {
	t.Helper()
	format, err := os.ReadFile("../bench/pod.json.fmt")
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Appendf(nil, string(format), "checkout", fmt.Sprintf("team-%03d", n%250), n, n%60, n%250, 1_000_000+n)
	pod, isEvent := bytes.CutPrefix(bytes.TrimSpace(line), []byte(`{"type":"ADDED","object":`))
	if !isEvent {
		t.Fatalf("%.100s is no event", line)
	}
	return pod[:len(pod)-1]
}

// cost is the least of several runs of a program.
type cost struct {
	cpu, elapsed time.Duration
	peak         int64 // bytes
}

func (c cost) String() string { return fmt.Sprintf("%.2f s, %d MB", c.cpu.Seconds(), c.peak/1e6) }

// costOf runs a program several times, with open as its standard input if it is set, and checks its output.
func costOf(t *testing.T, runs int, open func() io.Reader, isRight func(out string) bool,
	line ...string) (least cost) {
	t.Helper()
	for n := range runs {
		var out, errOut bytes.Buffer
		command := exec.Command(line[0], line[1:]...)
		command.Stdout, command.Stderr = &out, &errOut
		if open != nil {
			command.Stdin = open()
		}
		began, ended, peak := time.Now(), make(chan struct{}), make(chan int64)
		err := command.Start()
		if err == nil {
			go func() { peak <- peakOf(command.Process.Pid, ended) }()
			err = command.Wait()
			close(ended)
		}
		if err != nil || !isRight(out.String()) {
			t.Fatalf("%.300s prints %.300q, %v, %.1000s", line, out.String(), err, errOut.String())
		}
		state := command.ProcessState
		c := cost{state.UserTime() + state.SystemTime(), time.Since(began), <-peak}
		if n == 0 || c.cpu < least.cpu {
			least = c
		}
	}
	return least
}

// peakOf returns the peak memory of a process. The resource usage of a child begins with the memory of the
// process that has started it.
func peakOf(pid int, ended <-chan struct{}) (peak int64) {
	for {
		select {
		case <-ended:
			return peak
		case <-time.After(5 * time.Millisecond):
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // a process that has ended has none
		if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
			peak = max(peak, kilobytes<<10)
		}
	}
}

// hasLines returns a function that counts the lines of an output.
func hasLines(want int) func(string) bool {
	return func(out string) bool { return strings.Count(out, "\n") == want }
}

// counts returns a function that compares the only number of an output.
func counts(want int) func(string) bool {
	return func(out string) bool { return strings.TrimSpace(out) == fmt.Sprint(want) }
}

// TestFiles measures whole processes.
func TestFiles(t *testing.T) {
	if os.Getenv("CRDCACHE_NIGHTLY") == "" {
		t.Skip("it takes minutes: set CRDCACHE_NIGHTLY")
	}
	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Fatal(err)
	}
	crdcache, dir := harness.Crdcache(t), t.TempDir()
	var lines, list, inYAML bytes.Buffer
	many := filepath.Join(dir, "many")
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	inYAML.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for n := range pods {
		pod := podOf(t, n)
		lines.Write(append(pod, '\n'))
		if n > 0 {
			list.WriteByte(',')
		}
		list.Write(pod)
		item, err := yaml.JSONToYAML(pod)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&inYAML, "- %s", bytes.ReplaceAll(bytes.TrimSuffix(item, []byte("\n")), []byte("\n"), []byte("\n  ")))
		inYAML.WriteByte('\n')
		if n < files {
			write(fmt.Sprintf("many/%05d.json", n), pod)
		}
	}
	list.WriteString("]}\n")
	listPath, linesPath := write("list.json", list.Bytes()), write("lines.jsonl", lines.Bytes())
	table := "| input: question | jq: CPU, peak | crdcache: CPU, peak | CPU |\n|---|---|---|---|\n"
	row := func(name string, theirs, ours cost) {
		t.Logf("%s: jq %v, crdcache %v", name, theirs, ours)
		table += fmt.Sprintf("| %s | %v | %v | %.2f× |\n", name, theirs, ours, ours.cpu.Seconds()/theirs.cpu.Seconds())
	}
	row(fmt.Sprintf("%d MB, a List of 20,000 Pods: names", list.Len()/1e6),
		costOf(t, rounds, nil, hasLines(pods), jq, "-r", ".items[].metadata.name", listPath),
		costOf(t, rounds, nil, hasLines(pods), crdcache, "dump", "pods", "-A", "-o", "name", "--from", listPath))
	row("the same as JSON lines",
		costOf(t, rounds, nil, hasLines(pods), jq, "-r", ".metadata.name", linesPath),
		costOf(t, rounds, nil, hasLines(pods), crdcache, "dump", "pods", "-A", "-o", "name", "--from", linesPath))
	matches, err := filepath.Glob(many + "/*")
	if err != nil {
		t.Fatal(err)
	}
	row("10,000 files of a Pod each",
		costOf(t, rounds, nil, hasLines(files), append([]string{jq, "-r", ".metadata.name"}, matches...)...),
		costOf(t, rounds, nil, hasLines(files), crdcache, "dump", "pods", "-A", "-o", "name", "--from", many))
	live, fromFile := certificatesCost(t, crdcache, write)
	table += fmt.Sprintf("\n| | |\n|---|---|\n| `query --count` of 50,000 Certificates as JSON lines, CPU | %v; of a live server %v |\n", fromFile, live)
	ours := costOf(t, 1, nil, hasLines(pods), crdcache, "dump", "pods", "-A", "-o", "name", "--from", write("list.yaml", inYAML.Bytes()))
	table += fmt.Sprintf("| the Pods as a YAML List of %d MB | %v, %.1f bytes for each byte |\n", inYAML.Len()/1e6, ours,
		float64(ours.peak)/float64(inYAML.Len()))
	for typeName, want := range map[string]int{"configmaps": 1, "pods": 37 * pods} {
		open := func() io.Reader { return bundle(list.Bytes()) }
		ours = costOf(t, 1, open, counts(want), crdcache, "query", typeName, "-A", "--count", "--from", "-")
		t.Logf("count %s of 5 GB: %v, %v", typeName, ours, ours.elapsed)
		table += fmt.Sprintf("| count %s of a 5 GB bundle | %v, %.0f s |\n", typeName, ours, ours.elapsed.Seconds())
	}
	table += fmt.Sprintf("| the second question through `serve --from`, 20,000 Pods | %d ms |\n", secondQuestion(t, crdcache, listPath, dir).Milliseconds())
	t.Log("\n" + table)
}

// bundle returns a tar archive of 5 GB: a ConfigMap, and 37 namespaces of Pods.
func bundle(list []byte) io.Reader {
	reader, writer := io.Pipe()
	go func() { // ended by the reader
		archive := tar.NewWriter(writer)
		add := func(name string, text []byte) {
			err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
			if err == nil {
				_, err = archive.Write(text)
			}
			if err != nil {
				writer.CloseWithError(err)
			}
		}
		for n := range 37 {
			add(fmt.Sprintf("bundle/pods-%02d.json", n), bytes.ReplaceAll(list, []byte(`"namespace":"team-`), fmt.Appendf(nil, `"namespace":"n%02d--`, n)))
		}
		add("bundle/config.json", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"a"}}`))
		writer.CloseWithError(archive.Close())
	}()
	return reader
}

// certificatesCost returns the cost of the same count of a live server and of JSON lines.
func certificatesCost(t *testing.T, crdcache string,
	write func(string, []byte) string) (live, fromFile cost) {
	t.Helper()
	harness.InstallCRDs(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t))...)
	namespace, config := harness.Namespace(t), harness.Config(t)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"})
	workqueue.ParallelizeUntil(t.Context(), 20, certificates, func(n int) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
			"metadata": map[string]any{"name": fmt.Sprintf("cert-%05d", n), "labels": map[string]any{"team": fmt.Sprintf("team-%03d", n%250)}},
			"spec": map[string]any{"secretName": "s", "dnsNames": []any{fmt.Sprintf("c%d.example.com", n)},
				"issuerRef": map[string]any{"name": fmt.Sprintf("ca-%d", n%5)}}}}
		_, err := resource.Namespace(namespace).Create(context.Background(), u, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("create certificate %d: %v", n, err)
		}
	})
	question := []string{crdcache, "query", "certificates", "-A", "--count"}
	atServer := []string{"--kubeconfig", harness.Kubeconfig(t), "--cache", "none"}
	live = costOf(t, rounds, nil, counts(certificates), slices.Concat(question, atServer)...)
	command := exec.Command(crdcache, append([]string{"dump", "certificates", "-A", "-o", "jsonl", "--show-managed-fields"}, atServer...)...)
	lines, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	path := write("certificates.jsonl", lines)
	return live, costOf(t, rounds, nil, counts(certificates), append(question, "--from", path)...)
}

// secondQuestion returns the time of a question after another one to the same server of files.
func secondQuestion(t *testing.T, crdcache, path, dir string) time.Duration {
	t.Helper()
	kubeconfig := serve(t, path, dir)
	question := []string{crdcache, "query", "pods", "-A", "--count", "--kubeconfig", kubeconfig}
	costOf(t, 1, nil, counts(pods), question...)
	return costOf(t, rounds, nil, counts(pods), question...).elapsed
}

// serve serves files and returns a kubeconfig in a folder.
func serve(t *testing.T, path, dir string) (kubeconfig string) {
	t.Helper()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	server := exec.CommandContext(t.Context(), harness.Crdcache(t), "serve", "--from", path, "--write-kubeconfig", kubeconfig)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func(context.Context) error {
		_, err := os.Stat(kubeconfig)
		return err
	})
	return kubeconfig
}
