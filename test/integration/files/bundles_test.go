package files_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// tool is a program of a Go module that is not a dependency. A source is a file of testdata.
type tool struct{ module, version, sum, pkg, source string }

var tools = map[string]tool{
	"helm":           {"helm.sh/helm/v4", "v4.3.2", "h1:zdd8DgKTlLrlYIzdoAntDHLH0V3RkgNIpQ3yjzuD84M=", "helm.sh/helm/v4/cmd/helm", ""},
	"sonobuoy":       {"github.com/vmware-tanzu/sonobuoy", "v0.57.5", "h1:14onuGybyVNJDVraKPqPgPeDKpmqDPnPXxaksNxCOSM=", "github.com/vmware-tanzu/sonobuoy", ""},
	"support-bundle": {"github.com/replicatedhq/troubleshoot", "v0.133.0", "h1:ibbjLhsD/CHD65hpB4a0jtAsP4GUaNW5hdBmCxW4c+o=", "github.com/replicatedhq/troubleshoot/cmd/troubleshoot", ""},
	"velero":         {"github.com/vmware-tanzu/velero", "v1.18.3", "h1:9uwN5yxTWQl9PsF5ljX4xiG+7VIq3I9mxOQ0DyyZ31A=", ".", "velero.go.txt"},
}

// build builds a tool in a cache of the user, if it is not there yet, with the versions of the tool's go.mod.
func (p tool) build(t *testing.T, name string) (path string) {
	t.Helper()
	dir := t.TempDir()
	runGo := func(args ...string) []byte {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Stderr = dir, os.Stderr
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false")
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return out
	}
	var module struct{ Dir, Sum string }
	err := json.Unmarshal(runGo("mod", "download", "-json", p.module+"@"+p.version), &module)
	if err != nil || module.Sum != p.sum {
		t.Fatalf("%s has the sum %s, want %s: %v", p.module, module.Sum, p.sum, err)
	}
	copies := map[string]string{"go.mod": module.Dir + "/go.mod", "go.sum": module.Dir + "/go.sum"}
	if p.source != "" {
		copies["main.go"] = "testdata/" + p.source
	}
	for to, from := range copies {
		text, readErr := os.ReadFile(from)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, to), text, 0o600))
	}
	cache, cacheErr := os.UserCacheDir()
	if path = filepath.Join(cache, "crdcache", "tools", name); errors.Join(err, cacheErr) != nil {
		t.Fatal(err, cacheErr)
	}
	runGo("mod", "edit", "-module=tools", "-require="+p.module+"@"+p.version)
	runGo("build", "-p=2", "-ldflags=-s -w", "-o", path, p.pkg)
	return path
}

// auditLog is the API server's log of namespace audited.
var auditLog string

func startAudit(folder string) error {
	policy, err := filepath.Abs("testdata/audit-policy.yaml")
	auditLog = filepath.Join(folder, "audit.jsonl")
	return errors.Join(err, os.Setenv("CRDCACHE_APISERVER_ARGS", os.Getenv("CRDCACHE_APISERVER_ARGS")+
		" audit-policy-file="+policy+" audit-log-path="+auditLog))
}

// bundles has the environment of scripts.
type bundles struct {
	dir string
	env []string
}

// sh returns both outputs and the error of a script.
func (b bundles) sh(t *testing.T, script string, env ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir, command.Env, command.Stdout, command.Stderr = b.dir, append(b.env, env...), &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// newBundles builds the tools. The kubeconfig of prepare.sh is of a user who may not read everything.
func newBundles(t *testing.T) bundles {
	t.Helper()
	b, bin := bundles{dir: t.TempDir()}, t.TempDir()
	testdata, err := filepath.Abs("testdata")
	programs := map[string]string{"crdcache": harness.Crdcache(t), "kubectl": harness.KubectlPath(t)}
	for name, p := range tools {
		programs[name] = p.build(t, name)
	}
	for name, path := range programs {
		err = errors.Join(err, os.Symlink(path, filepath.Join(bin, name)))
	}
	kubeconfig, readErr := os.ReadFile(harness.Kubeconfig(t))
	if err := errors.Join(err, readErr, os.WriteFile(b.dir+"/admin", kubeconfig, 0o600)); err != nil {
		t.Fatal(err)
	}
	b.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "KUBECONFIG="+b.dir+"/limited",
		"ADMIN="+b.dir+"/admin", "AUDIT="+auditLog, "TESTDATA="+testdata)
	return b
}

// TestBundles makes a bundle of each form with its tool. All verbs must show the API server's objects, and no
// empty type of which the bundle does not have the objects.
func TestBundles(t *testing.T) {
	if os.Getenv("CRDCACHE_NIGHTLY") == "" {
		t.Skip("it builds large programs: set CRDCACHE_NIGHTLY")
	}
	harness.InstallCRDs(t, harness.ReadManifests(t, "../../../testdata/crds")...)
	harness.Apply(t, harness.ReadManifests(t, "../../../testdata/objects")...)
	b := newBundles(t)
	objects, err := os.ReadFile("../cli/testdata/bundle.yaml")
	objects = bytes.ReplaceAll(objects, []byte("NAMESPACE"), []byte(harness.Namespace(t)))
	table, readErr := os.ReadFile("testdata/forms.txt")
	if err := errors.Join(err, readErr, os.WriteFile(b.dir+"/objects.yaml", objects, 0o600)); err != nil {
		t.Fatal(err)
	}
	harness.Apply(t, harness.ReadManifests(t, b.dir+"/objects.yaml")...)
	if _, text, err := b.sh(t, "sh $TESTDATA/prepare.sh"); err != nil {
		t.Fatal(err, text)
	}
	answers := "| bundle | types | objects, by each verb | unknown |\n|---|---|---:|---|\n"
	for line := range strings.Lines(string(table)) {
		form := strings.SplitN(strings.TrimSpace(line), "; ", 5) // forms.txt explains them
		if line[0] == '#' {
			continue
		}
		t.Run(form[0], func(t *testing.T) {
			path := filepath.Join(b.dir, form[0])
			_, text, _ := b.sh(t, form[4]) // a tool can fail for want of rights
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Fatal(err, text)
			}
			args := strings.Join(form[:4], "' '")
			row, text, err := b.sh(t, "sh $TESTDATA/check.sh '"+args+"'", "SERVED="+serve(t, path, t.TempDir()))
			if err != nil {
				t.Error(err, text)
			}
			answers += row
		})
	}
	t.Log("\n" + answers)
}
