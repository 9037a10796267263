package crdcached_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

// intendedDifferences lists where crdcached answers an administrator differently from the API server.
// Unauthorized users get the API server's 403 instead: see testAnswers.
var intendedDifferences = []answers.Difference{
	answers.FutureWatches,
	{
		Why:    "every write gets the same 405, whatever the path",
		Writes: true, Path: regexp.MustCompile("^(/nope|/healthz|/version|/api|/api/v1|" + demo +
			"/nope)$"), Code: http.StatusMethodNotAllowed,
	},
	{
		Why:    "the 405 for a write has crdcached's own text",
		Writes: true, Path: regexp.MustCompile("^" + demo +
			"/environments(/[^/]+)?$"), Code: http.StatusMethodNotAllowed, ExpectedText: "crdcached only reads",
	},
	{
		Why:  "a type that is not cached gets 421, whether or not the cluster has it",
		Path: regexp.MustCompile("/v[19]/(nope(/x(/y)?)?|namespace|environment|Environments|apiservices/none|namespaces/payments/nope(/x)?)$"),
		Code: http.StatusMisdirectedRequest, ExpectedText: "crdcached does not cache",
	},
	{
		Why: "namespaces in a group, and an empty version, count as types that are not cached",
		Path: regexp.MustCompile("^" + demo +
			"/namespaces(/edge(/|/status|/namespaces/x|%2Fx/workloads)?)?$|^/apis/" + group + "//v1$"),
		Code: http.StatusMisdirectedRequest, ExpectedText: "crdcached does not cache",
	},
	{
		Why: "an ambiguous path gets 400 instead of 404",
		Path: regexp.MustCompile("^(/apis//v1/x|" + demo +
			"//environments|/apis/nope/v1/x/y/z/a/b|/api/v1/nope/x/y/z)$"),
		Code: http.StatusBadRequest, ExpectedText: "does not serve the path",
	},
}

// TestAnswers compares the answers of crdcached and the API server to an administrator, except
// intendedDifferences.
func TestAnswers(t *testing.T) {
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	s := harness.StartCrdcached(
		t, "types: ['*.demo.crdcache.dev', namespaces, customresourcedefinitions]\nlimits: {requests: 0, watches: 0, bytesPerSecond: 0}\n")
	admin := harness.Config(t)
	ours := answers.Server{Name: "crdcached", Config: s.As(admin), IntendedDifferences: intendedDifferences}
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) {
			answers.Compare(t, admin, ours, suite.Questions)
		})
	}
}

// send sends one request. header alternates names and values.
func send(t *testing.T, config *rest.Config, method, path string, header ...string) answers.Answer {
	t.Helper()
	all := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		all.Set(header[i], header[i+1])
	}
	return answers.Ask(t, config, method, path, all)
}

// TestAggregatedServer reads from crdcached through the API server, which has an APIService.
func TestAggregatedServer(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	server := harness.StartCrdcached(t, "indexConfigs: ['"+testdata+"indexes/platform.yaml']")
	address, err := url.Parse(server.URL)
	must(t, err)
	port, err := strconv.Atoi(address.Port())
	must(t, err)
	harness.RegisterAPIService(t, schema.GroupVersion{Group: "cache.crdcache.dev", Version: "v1"}, port)
	harness.Apply(t, ofKind(buildManifests(t, "example"), "ClusterRole", "ClusterRoleBinding")...)

	user := harness.NewUser(t, "aggregated")
	user.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	config := user.Config(t)
	config.Host += "/apis/cache.crdcache.dev/v1/proxy"
	counts := &requestCounts{counts: map[string]int{}}
	counted := rest.CopyConfig(config)
	counted.Wrap(counts.wrap)
	workloads := dynamic.NewForConfigOrDie(counted).Resource(schema.GroupVersionResource{Group: group,
		Version: "v1", Resource: "workloads"})
	harness.Eventually(t, func(ctx context.Context) error {
		_, err := workloads.Namespace("payments").List(ctx, metav1.ListOptions{})
		return err
	})
	if counts.counts["200 cache "] == 0 {
		t.Errorf("code and server of the responses are %v, want 200 and cache", counts.counts)
	}
	for name, err := range map[string]error{
		"another namespace": errorOf(workloads.Namespace("storefront").List(t.Context(), metav1.ListOptions{})),
		"all namespaces":    errorOf(workloads.List(t.Context(), metav1.ListOptions{})),
		"a write":           workloads.Namespace("payments").Delete(t.Context(), "ledger", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s returns %v, want a refusal", name, err)
		}
	}
	spoofed := rest.CopyConfig(config)
	spoofed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("X-Remote-Group", "system:masters")
			return next.RoundTrip(r)
		})
	})
	_, err = dynamic.NewForConfigOrDie(spoofed).Resource(crd.GVR).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a list with the headers of a proxy returns %v, want Forbidden", err)
	}

	kubeconfig := harness.WriteKubeconfig(t, config)
	kubectl := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), harness.KubectlPath(t), args...)
		c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+t.TempDir())
		return c
	}
	out, err := kubectl("get", "wl", "-n", "payments").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "card-gateway") {
		t.Errorf("kubectl get prints\n%s%v, want a table with card-gateway", out, err)
	}
	followWorkloads(t, kubectl("get", "workloads", "--output-watch-events", "--watch", "-n", "payments", "-o",
		`jsonpath={.type} {.object.metadata.namespace}/{.object.metadata.name}{"\n"}`))

	// The API server merges the documents of aggregated servers. Those of crdcached must be empty.
	client := discovery.NewDiscoveryClientForConfigOrDie(harness.Config(t))
	resources, err := client.ServerResourcesForGroupVersion("cache.crdcache.dev/v1")
	if err != nil || len(resources.APIResources) > 0 {
		t.Errorf("the API server discovers %v, %v in the group, want no resources", resources, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// crdcachedKubeconfig returns the path of a kubeconfig with exactly the rights that the manifests grant to
// crdcached.
func crdcachedKubeconfig(t *testing.T) string {
	t.Helper()
	harness.Apply(t, ofKind(buildManifests(t, "base"), "Namespace", "ServiceAccount", "ClusterRole",
		"ClusterRoleBinding", "RoleBinding")...)
	config := harness.Config(t)
	config.BearerToken = strings.TrimSpace(harness.Kubectl(t, "create", "token", "crdcached", "-n", "crdcached"))
	return harness.WriteKubeconfig(t, config)
}

// expiredCopy returns a copy of token with an expiry in the past, signed with the cluster's key.
func expiredCopy(t *testing.T, token string) string {
	t.Helper()
	key, err := keyutil.PrivateKeyFromFile(harness.APIServerFlag(t, "--service-account-signing-key-file"))
	must(t, err)
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var claims map[string]any
	must(t, json.Unmarshal(text, &claims))
	const hour = 3600
	claims["iat"], claims["nbf"], claims["exp"] = claims["iat"].(float64)-2*hour,
		claims["iat"].(float64)-2*hour, claims["iat"].(float64)-hour
	if text, err = json.Marshal(claims); err != nil {
		t.Fatal(err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)
	sum := sha256.Sum256([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(t, key, sum[:]))
}

// sign signs the hash of a token, by the algorithm for the type of the key.
func sign(t *testing.T, key any, sum []byte) []byte {
	t.Helper()
	switch signer := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, signer, sum)
		must(t, err)
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case *rsa.PrivateKey:
		signed, err := rsa.SignPKCS1v15(rand.Reader, signer, crypto.SHA256, sum)
		must(t, err)
		return signed
	}
	t.Fatalf("cannot sign a token with a %T", key)
	return nil
}
