// Package assistants_test compares crdcache mcp with another server of the Model Context Protocol, and
// calls it by another client. Make installs both.
package assistants_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var document = flag.String("document", "", "write the comparison into this file")

func TestMain(m *testing.M) { harness.Main(m) }

// TestInspector calls a tool by the inspector of the protocol's authors.
func TestInspector(t *testing.T) {
	const data = "../../../testdata/"
	out, err := exec.Command("node_modules/.bin/mcp-inspector", "--cli", harness.Crdcache(t), "mcp", "--from", data+"crds",
		"--from", data+"objects", "--method", "tools/call", "--tool-name", "aggregate", "--tool-arg", "type=workloads").Output()
	if err != nil || !strings.Contains(string(out), `\"rows\":[[\"18\"]]`) {
		t.Errorf("the inspector prints %s, %v", out, err)
	}
}

// TestConformance runs the protocol's conformance tests, without those that call tools of a special server. A
// proxy adds the token to their requests.
func TestConformance(t *testing.T) {
	const data, token = "../../../testdata/", "secret"
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(harness.Crdcache(t), "mcp", "--from", data+"crds", "--from", data+"objects",
		"--listen", "127.0.0.1:0", "--token-file", tokenFile)
	stderr, err := command.StderrPipe()
	if err := errors.Join(err, command.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, address, _ := strings.Cut(strings.TrimSpace(line), "answering at ")
	target, parseErr := url.Parse(address)
	if err := errors.Join(err, parseErr); err != nil || address == "" {
		t.Fatalf("stderr has %q, %v", line, err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which the server checks
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(proxy.Close)
	for _, scenario := range []string{"server-initialize", "logging-set-level", "ping", "tools-list", "resources-list",
		"prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			run := exec.Command("node_modules/.bin/conformance", "server", "--url", proxy.URL+"/", "--scenario", scenario)
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// assistant is a client of a server process.
type assistant struct {
	*exec.Cmd
	in      io.Writer
	out     *bufio.Reader
	id      int
	bytes   int // of the measured answers
	elapsed time.Duration
	right   int
}

func start(t *testing.T, program string, args ...string) *assistant {
	t.Helper()
	a := &assistant{Cmd: exec.Command(program, args...)}
	a.Env = append(os.Environ(), "KUBECONFIG="+harness.Kubeconfig(t))
	in, inErr := a.StdinPipe()
	out, outErr := a.StdoutPipe()
	if err := errors.Join(inErr, outErr, a.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Process.Kill(), a.Wait() })
	a.in, a.out = in, bufio.NewReaderSize(out, 1<<20)
	a.request(t, "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "test", "version": "1"}})
	fmt.Fprintln(a.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return a
}

func (a *assistant) request(t *testing.T, method string, params any) string {
	t.Helper()
	a.id++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(a.in, "%s\n", text)
	for {
		line, err := a.out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal(line, &answer) == nil && answer.ID == a.id {
			if len(answer.Result.Content) == 0 {
				return string(line)
			}
			return answer.Result.Content[0].Text
		}
	}
}

// ask asks a question twice, and measures the second answer. It is right if it has all facts.
func (a *assistant) ask(t *testing.T, tool, arguments string, facts ...string) (answer string) {
	t.Helper()
	params := map[string]any{"name": tool, "arguments": json.RawMessage(arguments)}
	a.request(t, "tools/call", params)
	began := time.Now()
	answer = a.request(t, "tools/call", params)
	a.elapsed += time.Since(began)
	a.bytes += len(answer)
	for _, fact := range facts {
		if !strings.Contains(answer, fact) {
			t.Logf("%s: the answer to %s %s has not %q: %.400s", filepath.Base(a.Path), tool, arguments, fact, answer)
			return answer
		}
	}
	a.right++
	return answer
}

// usage returns the CPU time and the peak memory in MiB of the process.
func (a *assistant) usage(t *testing.T) (cpu time.Duration, peak int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.Process.Pid))
	status, statusErr := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Process.Pid))
	if err := errors.Join(err, statusErr); err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	for _, field := range fields[12:14] { // user and system time in hundredths of a second
		ticks, _ := strconv.Atoi(field)
		cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, _ := strconv.Atoi(strings.Fields(after)[0])
	return cpu, kilobytes >> 10
}

const pods, certificates, certificateType = 14_000, 5_000, "certificates.cert-manager.io"

// create creates objects and sets their status.
func create(t *testing.T, gvr schema.GroupVersionResource, n int, object func(i int) string) {
	t.Helper()
	config := harness.Config(t)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	workqueue.ParallelizeUntil(t.Context(), 20, n, func(i int) {
		u := &unstructured.Unstructured{}
		err := u.UnmarshalJSON([]byte(object(i)))
		status, resource := u.Object["status"], client.Resource(gvr).Namespace(u.GetNamespace())
		if err == nil {
			if u, err = resource.Create(context.Background(), u, metav1.CreateOptions{}); err == nil {
				u.Object["status"] = status
				_, err = resource.UpdateStatus(context.Background(), u, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			t.Errorf("create object %d: %v", i, err)
		}
	})
}

// TestTwelveQuestions asks both servers about many objects. A Pod has the number i, the node i%50, the
// namespace i%20 and the application i%100, of which one is not ready. Ten certificates expire within
// 14 days.
func TestTwelveQuestions(t *testing.T) {
	if os.Getenv("CRDCACHE_NIGHTLY") == "" {
		t.Skip("it creates 19,000 objects: set CRDCACHE_NIGHTLY")
	}
	harness.InstallCRDs(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t))...)
	namespaces := make([]string, 20)
	for i := range namespaces {
		namespaces[i] = harness.Namespace(t)
	}
	create(t, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, pods, func(i int) string {
		ready := map[bool]string{true: "False", false: "True"}[i%100 == 7]
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":%q,"name":"pod-%05d","labels":{"app":"app-%02d"},
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"set-%[3]d","uid":"u%[3]d"}]},
			"spec":{"nodeName":"node-%02d","containers":[{"name":"main","image":"registry.example.com/app:%[3]d"}]},
			"status":{"phase":"Running","conditions":[{"type":"Ready","status":%[5]q}]}}`, namespaces[i%20], i, i%100, i%50, ready)
	})
	now := time.Now().UTC()
	expiry := func(i int) string {
		days := 90
		if i%500 == 3 {
			days = 7
		}
		return now.Add(time.Duration(days) * 24 * time.Hour).Format(time.RFC3339)
	}
	gvr := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	create(t, gvr, certificates, func(i int) string {
		return fmt.Sprintf(`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"namespace":%q,"name":"cert-%04d"},
			"spec":{"secretName":"s","issuerRef":{"name":"ca-%d"}},"status":{"notAfter":%q}}`, namespaces[i%20], i, i%5, expiry(i))
	})
	ours := start(t, harness.Crdcache(t), "mcp")
	theirs := start(t, "node_modules/kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64", "--read-only")
	var token struct{ Since string }
	first := ours.request(t, "tools/call", map[string]any{"name": "changes", "arguments": map[string]any{"types": []string{"pods"}}})
	if err := json.Unmarshal([]byte(first), &token); err != nil {
		t.Fatal(first, err)
	}
	harness.Kubectl(t, "label", "pod", "-n", namespaces[5], "pod-00005", "changed=yes")
	in := namespaces[7]
	list, listed := `{"apiVersion":"cert-manager.io/v1","kind":"Certificate"}`, "resources_list"
	notReady := `@.status.conditions[?(@.type=='Ready' && @.status!='True')]`
	for _, q := range []struct {
		tool, arguments   string
		facts             []string
		theirTool, theirs string
		theirFacts        []string
	}{
		{"query", fmt.Sprintf(`{"type":%q,"where":"@.status.notAfter < '%s'","columns":[".status.notAfter"]}`, certificateType,
			now.Add(14*24*time.Hour).Format(time.RFC3339)), []string{`"shown":"10 of 10"`, "cert-4503", expiry(3)[:10]},
			listed, list, []string{"cert-4503", expiry(3)[:10]}},
		{"aggregate", fmt.Sprintf(`{"type":"pods","where":%q,"groupBy":[".spec.nodeName"]}`, notReady),
			[]string{`["node-07","140"]`}, "pods_list", `{}`, []string{"pod-13907", "node-07"}},
		{"get", fmt.Sprintf(`{"type":"pod","namespace":%q,"name":"pod-00007","paths":[".metadata.ownerReferences"]}`, in),
			[]string{"set-7"}, "pods_get", fmt.Sprintf(`{"namespace":%q,"name":"pod-00007"}`, in), []string{"set-7"}},
		{"changes", fmt.Sprintf(`{"since":%q}`, token.Since), []string{"pod-00005", "changed"}, "events_list", `{}`, []string{"pod-00005"}},
		{"aggregate", `{"type":"pods"}`, []string{`["14000"]`}, "pods_list", `{}`, []string{"pod-00000", "pod-13999"}},
		{"aggregate", `{"type":"pods","groupBy":[".metadata.namespace"]}`, []string{fmt.Sprintf(`[%q,"700"]`, in)},
			"pods_list", `{}`, []string{"pod-13987"}},
		{"query", fmt.Sprintf(`{"type":"pods","namespace":%q,"where":"@.spec.nodeName == 'node-07'","columns":[".spec.nodeName"],"maxBytes":8192}`, in),
			[]string{`"shown":"140 of 140"`, "pod-13907"}, "pods_list_in_namespace", fmt.Sprintf(`{"namespace":%q}`, in), []string{"pod-13907", "node-07"}},
		{"aggregate", fmt.Sprintf(`{"type":%q,"groupBy":[".spec.issuerRef.name"]}`, certificateType), []string{`["ca-3","1000"]`},
			listed, list, []string{"ca-3"}},
		{"aggregate", `{"type":"pods","labels":"app=app-42","groupBy":[".spec.containers[*].image"]}`,
			[]string{`["registry.example.com/app:42","140"]`}, "pods_list", `{"labelSelector":"app=app-42"}`, []string{"app:42"}},
		{"get", fmt.Sprintf(`{"type":%q,"namespace":%q,"name":"cert-0007","paths":[".status.notAfter"]}`, certificateType, in),
			[]string{expiry(7)[:10]}, "resources_get", fmt.Sprintf(`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","namespace":%q,"name":"cert-0007"}`, in),
			[]string{expiry(7)[:10]}},
		{"types", `{"match":"*.cert-manager.io"}`, []string{"certificaterequests", "issuers", certificateType}, listed,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"}`, []string{"issuers", certificateType}},
		{"query", fmt.Sprintf(`{"type":"pods","namespace":%q,"where":%q}`, in, notReady), []string{`of 140`, "pod-00007"},
			"pods_list_in_namespace", fmt.Sprintf(`{"namespace":%q}`, in), []string{"pod-13907"}},
	} {
		ours.ask(t, q.tool, q.arguments, q.facts...)
		theirs.ask(t, q.theirTool, q.theirs, q.theirFacts...)
	}
	ourCPU, ourPeak := ours.usage(t)
	theirCPU, theirPeak := theirs.usage(t)
	ourBytes, ourTime := ours.bytes, ours.elapsed
	harness.RegisterAPIService(t, schema.GroupVersion{Group: "down.example.com", Version: "v1"}, 1)
	harness.Eventually(t, func(context.Context) error {
		answer := ours.request(t, "tools/call", map[string]any{"name": "types"})
		if !strings.Contains(answer, `"complete":false,"unknown":[`) || !strings.Contains(answer, "down.example.com") {
			return fmt.Errorf("with an aggregated API that is down, types answers %s", answer)
		}
		return nil
	})
	ours.ask(t, "aggregate", `{"type":"pods"}`, `"complete":true`, `["14000"]`)
	harness.KillAPIServer(t)
	ours.ask(t, "aggregate", `{"type":"pods"}`, "cannot reach the API server")
	if ours.right != 14 {
		t.Errorf("%d of 14 answers are right", ours.right)
	}
	if 20*ourBytes > theirs.bytes || 4*ourPeak > theirPeak {
		t.Errorf("%d bytes and %d MiB, want at most 1/20 of %d and 1/4 of %d", ourBytes, ourPeak, theirs.bytes, theirPeak)
	}
	table := fmt.Sprintf("| twelve questions about 14,000 Pods and 5,000 Certificates | crdcache | kubernetes-mcp-server 0.0.67 |\n|---|---|---|\n"+
		"| answers with the facts | %d | %d |\n| bytes | %d | %d |\n| time of repeated questions | %v | %v |\n| CPU | %v | %v |\n| peak memory | %d MiB | %d MiB |\n",
		ours.right-2, theirs.right, ourBytes, theirs.bytes,
		ourTime.Round(time.Millisecond), theirs.elapsed.Round(time.Millisecond),
		ourCPU.Round(10*time.Millisecond), theirCPU.Round(10*time.Millisecond), ourPeak, theirPeak)
	t.Log("\n" + table)
	if *document != "" {
		if err := harness.WriteSection(*document, "Measured", table); err != nil {
			t.Fatal(err)
		}
	}
}
