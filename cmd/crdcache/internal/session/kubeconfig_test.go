package session

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: first
contexts:
- {name: first, context: {cluster: one, user: ann, namespace: home}}
- {name: second, context: {cluster: two, user: bob}}
clusters:
- {name: one, cluster: {server: "https://one.example", insecure-skip-tls-verify: true}}
- {name: two, cluster: {server: "https://two.example", tls-server-name: two, proxy-url: "http://proxy.example", disable-compression: true}}
users:
- {name: ann, user: {token: secret}}
- {name: bob, user: {username: bob, password: word, as: root, as-groups: [admins], as-uid: "7", as-user-extra: {scopes: [a]}}}
`

// comparableConfig returns the text of a config, or of the error.
func comparableConfig(t *testing.T, config *rest.Config, err error, loader clientcmd.ClientConfig) string {
	t.Helper()
	if err != nil {
		return err.Error()
	}
	namespace, overridden, err := loader.Namespace()
	proxy := ""
	if config.Proxy != nil {
		u, err := config.Proxy(nil)
		if err != nil {
			t.Fatal(err)
		}
		proxy = u.String()
	}
	text, encodeErr := json.MarshalIndent(map[string]any{
		"host": config.Host, "user": config.Username, "password": config.Password,
		"token": config.BearerToken, "tokenFile": config.BearerTokenFile,
		"as": config.Impersonate, "cert": config.CertFile, "key": config.KeyFile, "ca": config.CAFile,
		"insecure": config.Insecure, "serverName": config.ServerName,
		"proxy": proxy, "timeout": config.Timeout, "compression": !config.DisableCompression,
		"namespace": namespace, "overridden": overridden, "error": err,
	}, "", "  ")
	if encodeErr != nil {
		t.Fatal(encodeErr)
	}
	return string(text)
}

// TestKubectlFlags compares the flags and the resulting config with kubectl's.
func TestKubectlFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(twoContexts), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("HOME", t.TempDir())
	for _, line := range []string{
		"", "--context second", "--context none", "--cluster two", "--user bob", "--cluster none",
		"--user none", "-n there", "--namespace there", "--context second -n there",
		"-s https://other.example", "--server https://other.example --context second", "--server :bad:",
		"--token other", "--token other --user bob",
		"--as jane", "--as jane --as-group a --as-group b,c --as-uid 9",
		"--as jane --as-user-extra k=v --as-user-extra k=w=x --as-user-extra l=",
		"--as-group a", "--as-uid 9",
		"--client-certificate c.pem --client-key k.pem", "--client-certificate c.pem",
		"--certificate-authority ca.pem", "--certificate-authority ca.pem --insecure-skip-tls-verify=false",
		"--insecure-skip-tls-verify --cluster two", "--tls-server-name x",
		"--disable-compression", "--disable-compression=false --cluster two",
		"--request-timeout 5s", "--request-timeout 7", "--request-timeout 0", "--kubeconfig /none",
		"--kubeconfig " + path + " --context second",
	} {
		t.Run(line, func(t *testing.T) {
			var k kubeconfigFlags
			ours := pflag.NewFlagSet("ours", pflag.ContinueOnError)
			k.add(ours)
			kubectl := genericclioptions.NewConfigFlags(true)
			theirs := pflag.NewFlagSet("theirs", pflag.ContinueOnError)
			kubectl.AddFlags(theirs)
			for _, set := range []*pflag.FlagSet{ours, theirs} {
				if err := set.Parse(strings.Fields(line)); err != nil {
					t.Fatal(err)
				}
			}
			if err := k.validate(); err != nil {
				t.Fatal(err)
			}
			config, err := k.loader().ClientConfig()
			got := comparableConfig(t, config, err, k.loader())
			config, err = kubectl.ToRESTConfig()
			if diff := cmp.Diff(comparableConfig(t, config, err, kubectl.ToRawKubeConfigLoader()),
				got); diff != "" {
				t.Errorf("(-kubectl +ours):\n%s", diff)
			}
		})
	}
}

func TestKubeconfigFlagsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"--as-user-extra k":      `--as-user-extra is "k": write key=value`,
		"--as-user-extra =v":     `--as-user-extra is "=v": write key=value`,
		"--request-timeout soon": `--request-timeout is "soon": use a duration like 30s`,
		"--request-timeout -1s":  `--request-timeout is "-1s": use a duration like 30s`,
	} {
		var k kubeconfigFlags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		k.add(set)
		if err := set.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if err := k.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestTraffic verifies that the received bytes are counted and not changed.
func TestTraffic(t *testing.T) {
	const body = `{"kind":"List","items":[{},{}]}`
	var counted receivedBytes
	client := http.Client{Transport: counted.wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader(body))}, nil
	}))}
	response, err := client.Get("http://server.example")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(response.Body)
	if n := counted.received.Load(); err != nil || string(got) != body || n != int64(len(body)) {
		t.Errorf("received %q, %v, and counted %d bytes, want %q and %d", got, err, n, body, len(body))
	}
}

// TestProgressLine checks the texts and that they fit narrow terminals.
func TestProgressLine(t *testing.T) {
	const mebibyte = 1 << 20
	for want, got := range map[string]string{
		"synced 0 of 1 types, 31 MiB, 4 s":          progressLine(0, 1, 31*mebibyte, 4200*time.Millisecond),
		"synced 1 of 2 types, 1.5 MiB, 0 s":         progressLine(1, 2, 3*mebibyte/2, 100*time.Millisecond),
		"synced 99 of 99 types, 99999 MiB, 86400 s": progressLine(99, 99, 99_999*mebibyte, 24*time.Hour),
	} {
		if got != want || len(got) > 60 {
			t.Errorf("progressLine() = %q, want %q", got, want)
		}
	}
}
