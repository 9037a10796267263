package shardserving_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/integration/crdcached/running"
	"github.com/crdcache/crdcache/integration/harness"
)

const (
	testdata = "../../testdata/"
	group    = "demo.crdcache.dev"
	all      = "/apis/" + group + "/v1/workloads"
	payments = "/apis/" + group + "/v1/namespaces/payments/workloads"
)

var workloads = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "workloads"}

// TestReplicas: three replicas answer as one API server, or not at all.
func TestReplicas(t *testing.T) {
	harness.InstallCRDs(t, harness.Read(t, testdata+"crds")...)
	harness.Apply(t, harness.Read(t, testdata+"objects")...)
	for _, key := range []string{"metadata.uid", "metadata.namespace"} {
		t.Run(key, func(t *testing.T) {
			r := startReplicas(t, key, 3)
			reader := running.NewUser(t, "reader")
			reader.Grant(t, "", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"workloads"}, Verbs: []string{"get", "list", "watch"}})
			user := reader.Config(t)
			t.Run("pages", func(t *testing.T) { testPages(t, r, user) })
			t.Run("informers", func(t *testing.T) { testInformers(t, r, user) })
			t.Run("kubectl", func(t *testing.T) { testKubectl(t, r, user) })
			t.Run("rights", func(t *testing.T) { testRights(t, r) })
			t.Run("away", func(t *testing.T) { testAway(t, r, user) })
		})
	}
}

// answer is a response whose body has been read.
type answer struct {
	code   int
	header http.Header
	body   string
}

func ask(t *testing.T, config *rest.Config, path string, header ...string) answer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// list lists workloads.
func list(t *testing.T, config *rest.Config, params url.Values) *unstructured.Unstructured {
	t.Helper()
	got := ask(t, config, all+"?"+params.Encode())
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(got.body), &u.Object); err != nil || got.code != http.StatusOK {
		t.Fatalf("%s of %s: %d %s", params.Encode(), config.Host, got.code, got.body)
	}
	return u
}

// writer changes workloads.
type writer struct {
	*testing.T
	client dynamic.NamespaceableResourceInterface
	serial int
}

func newWriter(t *testing.T) *writer {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return &writer{T: t, client: client.Resource(workloads)}
}

// change creates, updates, or deletes a workload; one that is deleted may be created anew.
func (w *writer) change() {
	w.Helper()
	w.serial++
	list, err := w.client.List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	o := &list.Items[w.serial%len(list.Items)]
	in := w.client.Namespace(o.GetNamespace())
	create := func() {
		o.SetResourceVersion("")
		o.SetUID("")
		_, err = in.Create(w.Context(), o, metav1.CreateOptions{})
	}
	switch w.serial % 3 {
	case 0:
		o.SetLabels(map[string]string{"n": strconv.Itoa(w.serial)})
		_, err = in.Update(w.Context(), o, metav1.UpdateOptions{})
	case 1:
		o.SetName(fmt.Sprintf("%.20s-%d-%d", o.GetName(), w.serial, time.Now().UnixNano()))
		create()
	default:
		if err = in.Delete(w.Context(), o.GetName(), metav1.DeleteOptions{}); err == nil && w.serial%2 == 0 {
			create()
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}

// testPages reads lists by pages of odd sizes, each page at another replica, while objects change. Together they are what the API
// server had at the version of the list.
func testPages(t *testing.T, r *replicas, user *rest.Config) {
	w := newWriter(t)
	for round, query := range []string{"limit=3", "limit=7", "resourceVersion=0", "limit=5&labelSelector=!n", ""} {
		w.change()
		params, _ := url.ParseQuery(query)
		var got []any
		version := ""
		for page := 0; page == 0 || params.Get("continue") != ""; page++ {
			one := list(t, r.servers[(round+page)%3].As(user), params)
			if page > 0 && one.GetResourceVersion() != version {
				t.Errorf("the page %d of %q is of %s, that before of %s", page, query, one.GetResourceVersion(), version)
			}
			version = one.GetResourceVersion()
			got = append(got, one.Object["items"].([]any)...)
			params.Set("continue", one.GetContinue())
			params.Del("resourceVersion")
			if page < 3 {
				w.change()
			}
		}
		exact := url.Values{"resourceVersion": {version}, "resourceVersionMatch": {"Exact"}, "labelSelector": params["labelSelector"]}
		if diff := cmp.Diff(list(t, user, exact).Object["items"], any(got)); diff != "" {
			t.Errorf("%q at %s (-API server +replicas):\n%s", query, version, diff)
		}
	}
	w.change()
	want := list(t, user, nil)
	if diff := cmp.Diff(want.Object["items"], list(t, r.servers[0].As(user), nil).Object["items"]); diff != "" {
		t.Errorf("right after a change (-API server +replicas):\n%s", diff)
	}
}

// testInformers has client-go's informers follow all by each replica while objects change.
func testInformers(t *testing.T, r *replicas, user *rest.Config) {
	ctx, cancel := context.WithCancel(t.Context())
	var informers []cache.SharedIndexInformer
	for _, server := range r.servers {
		client, err := dynamic.NewForConfig(server.As(user))
		if err != nil {
			t.Fatal(err)
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		informers = append(informers, factory.ForResource(workloads).Informer())
		factory.Start(ctx.Done())
		defer factory.Shutdown()
	}
	defer cancel()
	w := newWriter(t)
	for range 9 {
		w.change()
	}
	want := versions(list(t, user, nil))
	for i, informer := range informers {
		harness.Eventually(t, func(context.Context) error {
			got := []string{}
			for _, obj := range informer.GetStore().List() {
				o := obj.(*unstructured.Unstructured)
				got = append(got, o.GetNamespace()+"/"+o.GetName()+" "+o.GetResourceVersion())
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("the informer of the replica %d (-want +got):\n%s", i, diff)
			}
			return nil
		})
	}
}

// versions are what a list has, sorted.
func versions(list *unstructured.Unstructured) []string {
	out := []string{}
	for _, item := range list.Object["items"].([]any) {
		u := unstructured.Unstructured{Object: item.(map[string]any)}
		out = append(out, u.GetNamespace()+"/"+u.GetName()+" "+u.GetResourceVersion())
	}
	slices.Sort(out)
	return out
}

// testKubectl has kubectl ask both.
func testKubectl(t *testing.T, r *replicas, user *rest.Config) {
	for _, args := range [][]string{
		{"get", "workloads", "-A", "-o", "json"}, {"get", "workloads", "-A", "--chunk-size=3", "-o", "name"}, {"get", "workloads", "-n", "payments", "-o", "yaml"},
	} {
		if diff := cmp.Diff(kubectl(t, user, args...), kubectl(t, r.servers[1].As(user), args...)); diff != "" {
			t.Errorf("%q (-API server +replica):\n%s", args, diff)
		}
	}
}

// kubectl runs kubectl as a user.
func kubectl(t *testing.T, config *rest.Config, args ...string) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return harness.Kubectl(t, append([]string{"--kubeconfig", path}, args...)...)
}

// testRights: users get what they may read, whoever has it, and nothing by saying to be somebody else.
func testRights(t *testing.T, r *replicas) {
	tenant, nobody := running.NewUser(t, "tenant"), running.NewUser(t, "nobody")
	tenant.Grant(t, "payments", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"workloads"}, Verbs: []string{"get", "list", "watch"}})
	users := map[string]*rest.Config{"tenant": tenant.Config(t), "nobody": nobody.Config(t), "no token": rest.AnonymousClientConfig(harness.Config(t))}
	for name, user := range users {
		for i, server := range r.servers {
			for _, path := range []string{all, all + "?limit=2", all + "?resourceVersion=0", payments, payments + "?limit=2", payments + "/ledger?resourceVersion=0", payments + "/none?resourceVersion=0"} {
				want, got := ask(t, user, path), ask(t, server.As(user), path)
				if got.code != want.code || want.code != http.StatusOK && got.body != want.body || want.code == http.StatusOK && !strings.Contains(got.body, `"ledger"`) && strings.Contains(want.body, `"ledger"`) {
					t.Errorf("%s at the replica %d: %s: %d %s, want %d %s", name, i, path, got.code, got.body, want.code, want.body)
				}
			}
			claims := []string{"X-Remote-User", "system:admin", "X-Remote-Group", "system:masters", "Crdcache-Part", "0"}
			if got := ask(t, server.As(users["nobody"]), all, claims...); got.code != http.StatusForbidden {
				t.Errorf("who says to be another is answered %d", got.code)
			}
		}
	}
	// A certificate of the replicas' authority with another name is nobody's.
	stranger := r.servers[0].As(users["no token"])
	stranger.CertFile, stranger.KeyFile = r.file("stranger.crt"), r.file("stranger.key")
	if got := ask(t, stranger, all, "X-Remote-User", "system:admin", "X-Remote-Group", "system:masters"); got.code != http.StatusForbidden && got.code != http.StatusUnauthorized {
		t.Errorf("a stranger who says to be another is answered %d", got.code)
	}
}

// testAway kills a replica, which brings refusals until it is back, and runs one that believes in another number of replicas.
func testAway(t *testing.T, r *replicas, user *rest.Config) {
	other := r.run(0, 2)
	for _, path := range []string{all, all + "?resourceVersion=0"} {
		got := ask(t, other.As(user), path)
		if r.key == "metadata.uid" && (got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "") {
			t.Errorf("a replica of two, where there are three: %s: %d %s", path, got.code, got.body)
		}
	}
	if err := other.Stop(); err != nil {
		t.Error(err)
	}
	want := versions(list(t, user, nil))
	r.servers[1].Kill()
	r.doors[1].lead("")
	for _, path := range []string{all, all + "?resourceVersion=0", all + "?limit=1"} {
		if got := ask(t, r.servers[2].As(user), path); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "2 of 3") {
			t.Errorf("with a replica away: %s: %d %s", path, got.code, got.body)
		}
	}
	r.start(1)
	for i, server := range r.servers {
		if diff := cmp.Diff(want, versions(list(t, server.As(user), nil))); diff != "" {
			t.Errorf("the replica %d, with all back (-want +got):\n%s", i, diff)
		}
	}
}
