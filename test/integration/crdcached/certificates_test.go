package crdcached_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority creates an authority, and writes its certificate to a file.
func newAuthority(folder, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, os.WriteFile(filepath.Join(folder, name),
		encode(certificate.Raw), 0o600)
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// userConfig returns a configuration with a client certificate that is valid until end.
func (a *authority) userConfig(t *testing.T, name string, end time.Time) *rest.Config {
	t.Helper()
	certificate, key, err := a.sign(name, end)
	must(t, err)
	config := rest.AnonymousClientConfig(harness.Config(t))
	config.CertData, config.KeyData, config.QPS = certificate, key, -1
	return config
}

// sign returns a client certificate that is valid until end, and its key, in PEM.
func (a *authority) sign(name string, end time.Time) (certificate, privateKey []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: a.certificate.NotBefore, NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return encode(signed), text, err
}

// TestClientCertificates checks that crdcached accepts the client certificates that the API server accepts.
func TestClientCertificates(t *testing.T) {
	admin, err := kubernetes.NewForConfig(harness.Config(t))
	must(t, err)
	s := harness.StartCrdcached(t, "types: [namespaces]\n")
	const name = "certified"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	stranger, err := newAuthority(t.TempDir(), "stranger")
	must(t, err)
	inAnHour := time.Now().Add(time.Hour)
	known := trustedAuthority.userConfig(t, name, inAnHour)
	harness.Eventually(t, func(context.Context) error { // new permissions take effect with a delay
		if got := send(t, known, http.MethodGet, "/api/v1/namespaces"); got.Code != http.StatusOK {
			return fmt.Errorf("with a certificate: %d", got.Code)
		}
		return nil
	})
	// crdcached reloads the authorities, which apply to new connections
	harness.Eventually(t, func(context.Context) error {
		if got := send(t, s.As(trustedAuthority.userConfig(t, name, inAnHour)), http.MethodGet,
			"/api/v1/namespaces"); got.Code != http.StatusOK {
			return fmt.Errorf("crdcached, with a certificate: %d", got.Code)
		}
		return nil
	})
	for reason, config := range map[string]*rest.Config{
		"known": known, "without rights": trustedAuthority.userConfig(t, "nobody", inAnHour),
		"of a stranger": stranger.userConfig(t, name, inAnHour),
		"expired":       trustedAuthority.userConfig(t, name, time.Now().Add(-time.Minute)),
	} {
		t.Run(reason, func(t *testing.T) {
			compare(t, s, config, http.MethodGet, "/api/v1/namespaces", "application/json")
		})
	}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestInformers follows a built-in and a custom type with each kind of client-go informer, and checks that
// the cache serves them.
func TestInformers(t *testing.T) {
	widgets := installWidgets(t)
	namespace := harness.Namespace(t)
	server := startProcess(t, configMaps, widgets)
	protobuf := server.config()
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = protobuf.ContentType + ",application/json"
	for name, tt := range map[string]struct {
		gvr         schema.GroupVersionResource
		config      *rest.Config
		newInformer func(*testing.T, *rest.Config, schema.GroupVersionResource) cache.SharedIndexInformer
	}{
		"typed":             {configMaps, server.config(), newTypedInformer},
		"typed, protobuf":   {configMaps, protobuf, newTypedInformer},
		"dynamic, built-in": {configMaps, server.config(), newDynamicInformer},
		"dynamic":           {widgets, server.config(), newDynamicInformer},
		"dynamic, protobuf": {widgets, protobuf, newDynamicInformer},
		"metadata":          {widgets, server.config(), newMetadataInformer},
		"metadata, typed":   {configMaps, protobuf, newMetadataInformer},
	} {
		t.Run(name, func(t *testing.T) {
			counts := &requestCounts{counts: map[string]int{}}
			config := rest.CopyConfig(tt.config)
			config.Wrap(counts.wrap)
			checkInformer(t, tt.newInformer(t, config, tt.gvr), tt.gvr, namespace)
			counts.checkOneWatchList(t)
		})
	}
}

// checkInformer runs an informer while an object is created, changed and deleted.
func checkInformer(t *testing.T, informer cache.SharedIndexInformer, gvr schema.GroupVersionResource,
	namespace string) {
	t.Helper()
	received := make(chan string, 100)
	record := func(verb string, obj any) {
		if o, ok := obj.(metav1.Object); ok && o.GetNamespace() == namespace {
			received <- fmt.Sprint(verb, " ", o.GetName(), " ", o.GetLabels()["value"])
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { record("add", o) }, UpdateFunc: func(_,
			o any) {
			record("update", o)
		}, DeleteFunc: func(o any) { record("delete", o) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }() // ended by cancel
	defer func() { cancel(); <-ended }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("timed out waiting for the informer's sync")
	}
	objects := adminClient(t).Resource(gvr).Namespace(namespace)
	o := newObject(gvr, "a", "1")
	created, err := objects.Create(ctx, o, metav1.CreateOptions{})
	must(t, err)
	created.SetLabels(map[string]string{"value": "2"})
	if _, err := objects.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, objects.Delete(ctx, "a", metav1.DeleteOptions{}))
	for _, want := range []string{"add a 1", "update a 2", "delete a 2"} {
		select {
		case got := <-received:
			if got != want {
				t.Fatalf("the informer sent %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("timed out waiting for the event %q", want)
		}
	}
}

func newTypedInformer(t *testing.T, config *rest.Config,
	_ schema.GroupVersionResource) cache.SharedIndexInformer {
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
}

func newDynamicInformer(t *testing.T, config *rest.Config,
	gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(gvr).Informer()
}

func newMetadataInformer(t *testing.T, config *rest.Config,
	gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	client, err := metadata.NewForConfig(config)
	must(t, err)
	return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(gvr).Informer()
}

// requestCounts counts responses by status code, answering server and the parameter sendInitialEvents.
type requestCounts struct {
	sync.Mutex
	counts map[string]int
}

func (a *requestCounts) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil {
			a.Lock()
			defer a.Unlock()
			a.counts[fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Crdcache-Served"), " ",
				r.URL.Query().Get("sendInitialEvents"))]++
		}
		return answer, err
	})
}

// checkOneWatchList expects one watch-list from the cache and no other request.
func (a *requestCounts) checkOneWatchList(t *testing.T) {
	t.Helper()
	a.Lock()
	defer a.Unlock()
	if kinds := slices.Sorted(maps.Keys(a.counts)); strings.Join(kinds, ",") != "200 cache true" {
		t.Errorf("code, server and sendInitialEvents of the responses are %v, want 200, cache and true", a.counts)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func installWidgets(t *testing.T) schema.GroupVersionResource {
	t.Helper()
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
}

// adminClient returns a client with all rights.
func adminClient(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	must(t, err)
	return client
}

func newObject(gvr schema.GroupVersionResource, name, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvr.GroupVersion().WithKind(map[string]string{"configmaps": "ConfigMap",
		"widgets": "Widget"}[gvr.Resource]))
	o.SetName(name)
	o.SetLabels(map[string]string{"value": value})
	return o
}
