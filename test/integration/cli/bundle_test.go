package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// kubectl cluster-info dump writes the types of bundleWorkloads.
const (
	bundleWorkloads = "pods,replicationcontrollers,replicasets,daemonsets,deployments,services,nodes,events"
	bundleOthers    = "apiservices,clusterrolebindings,clusterroles,configmaps,controllerrevisions,cronjobs,csidrivers," +
		"certificatesigningrequests,csinodes,csistoragecapacities,customresourcedefinitions,endpoints,endpointslices," +
		"events.events.k8s.io,horizontalpodautoscalers,ingressclasses,ingresses,ipaddresses,jobs,leases,limitranges," +
		"mutatingwebhookconfigurations,namespaces,networkpolicies,persistentvolumeclaims,persistentvolumes," +
		"poddisruptionbudgets,podtemplates,priorityclasses,prioritylevelconfigurations,resourcequotas,rolebindings," +
		"roles,runtimeclasses,secrets,serviceaccounts,servicecidrs,statefulsets,storageclasses," +
		"validatingadmissionpolicies,validatingwebhookconfigurations,volumeattachments,volumeattributesclasses"
)

// TestServedBundle compares kubectl against a served bundle with kubectl against the API server of which the
// bundle was made.
func TestServedBundle(t *testing.T) {
	namespace := harness.Namespace(t)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	applyObjects(t, namespace)
	dir := t.TempDir()
	harness.Kubectl(t, "cluster-info", "dump", "--all-namespaces", "--output-directory", dir)
	writeFile(t, filepath.Join(dir, "others.yaml"), harness.Kubectl(t, "get",
		"workloads,releases,"+bundleOthers, "-A", "-o", "yaml"))
	log := "==== START logs for container a of pod " + namespace + "/running ====\none\ntwo\n" +
		"==== END logs for container a of pod " + namespace + "/running ====\n"
	writeFile(t, filepath.Join(dir, namespace, "running", "logs.txt"), log)
	kubeconfig, stop := serveBundle(t, dir)
	kubectl := func(kubeconfig string, args ...string) result {
		cmd := newCommand(t, harness.KubectlPath(t), args...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
		return runCommand(t, cmd)
	}
	for _, args := range [][]string{
		{"get", "workloads,releases", "-A"}, {"get", "workloads", "-A", "-o", "wide"},
		{"get", "pod", "running", "-n", namespace, "-o", "json"}, {"get", "all", "-n", namespace, "-o", "name"},
		{"get", "pods", "-A", "-o", "yaml", "--field-selector", "status.phase=Running"},
		{"describe", "pod", "running", "-n", namespace}, {"describe", "node", namespace + "-a"},
		{"describe", "deployments,services,secrets", "-n", namespace},
		{"describe", "workloads", "-A"}, {"events", "-n", namespace, "--for", "pod/running"},
		{"wait", "pod/running", "--for", "condition=Ready", "-n", namespace}, {"explain", "workloads.spec"},
		{"explain", "pods"}, {"explain", "pods.metadata"}, {"explain", "pods.spec.containers.resources"},
		{"explain", "deployments.spec.strategy.rollingUpdate"}, {"explain", "ingresses.spec.tls"},
		{"explain", "pods.spec.restartPolicy"}, {"explain", "leases"}, {"explain", "crd.spec.names"}, {"explain", "validatingadmissionpolicies.spec"},
	} {
		want, got := kubectl(harness.Kubeconfig(t), args...), kubectl(kubeconfig, args...)
		if want.code != 0 {
			t.Errorf("kubectl %q: exit code %d, stderr:\n%s", args, want.code, want.stderr)
		}
		expectSame(t, "kubectl "+strings.Join(args, " "), withoutAgeValues(want.stdout),
			withoutAgeValues(got.stdout))
	}
	types := bundleWorkloads + "," + bundleOthers
	for _, format := range []string{"", "-owide"} {
		args := strings.Fields(types + " -n " + namespace + " " + format)
		want := kubectl(harness.Kubeconfig(t), append([]string{"get"}, args...)...).stdout
		if tables := strings.Count(want, "\n\n") + 1; tables != strings.Count(types, ",")+1 {
			t.Errorf("kubectl get prints %d tables: objects of a type are missing:\n%s", tables, want)
		}
		for name, got := range map[string]result{
			"kubectl get": kubectl(kubeconfig, append([]string{"get"}, args...)...),
			"dump":        run(t, harness.Crdcache(t), append([]string{"dump", "--from", dir}, args...)...),
		} {
			expectSame(t, name+format, withoutAgeValues(want), withoutAgeValues(got.stdout))
		}
	}
	kubectl(kubeconfig, "logs", "running", "-n", namespace, "-c", "a", "--tail", "1").expect(t, 0, "two\n", "")
	kubectl(kubeconfig, "logs", "running", "-n", namespace, "-c", "b").expect(t, 1, "", "not found")
	kubectl(kubeconfig, "delete", "pod", "running", "-n", namespace).expect(t, 1, "", "MethodNotAllowed")
	kubectl(kubeconfig, "label", "pod", "running", "-n", namespace, "a=b").expect(t, 1, "", "MethodNotAllowed")
	harness.Eventually(t, func(context.Context) error { // the server caches the types
		answer := run(t, harness.Crdcache(t), "query", "pods", "-n", namespace, "--keys-only", "-v", "--kubeconfig", kubeconfig)
		if answer.code != 0 || !strings.Contains(answer.stdout, namespace+"/running\n") ||
			!strings.Contains(answer.stderr, "answered by the cache server for pods.v1.") {
			return fmt.Errorf("query --kubeconfig: %+v", answer)
		}
		return nil
	})
	kubectl(kubeconfig, "get", "resourceslices").expect(t, 1, "", "the server doesn't have a resource type")
	stop()
	kubeconfig, stop = serveBundle(t, dir, "--web")
	kubectl(kubeconfig, "get", "pod", "running", "-n", namespace, "-o", "name").expect(t, 0, "pod/running\n", "")
	stop()
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig remains: %v", err)
	}
}

// applyObjects applies the objects of bundle.yaml in a namespace.
func applyObjects(t *testing.T, namespace string) {
	t.Helper()
	text, err := os.ReadFile("testdata/bundle.yaml")
	must(t, err)
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	writeFile(t, path, strings.ReplaceAll(string(text), "NAMESPACE", namespace))
	harness.Apply(t, harness.ReadManifests(t, path)...)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// serveBundle serves a folder, also as a page with --web. It returns a kubeconfig for it and a function that
// stops the server.
func serveBundle(t *testing.T, dir string, web ...string) (kubeconfig string, stop func()) {
	t.Helper()
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	cmd := newCommand(t, harness.Crdcache(t), append([]string{"serve", "--from", dir,
		"--write-kubeconfig", kubeconfig}, web...)...)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	isAddress := regexp.MustCompile("^(serving|open http://)").MatchString
	lines := bufio.NewScanner(stderr)
	for missing := 1 + len(web); missing > 0 && lines.Scan(); {
		if isAddress(lines.Text()) {
			missing--
		}
	}
	return kubeconfig, func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // with the code of an interrupt
	}
}
