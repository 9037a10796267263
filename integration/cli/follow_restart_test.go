package cli_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestFollowRestart checks that unchanged objects are not printed after the API server was restarted and they
// were listed again. It covers every format, columns from the CRD and from the server, and a query.
func TestFollowRestart(t *testing.T) {
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	ns := harness.Namespace(t)
	configMap := manifest{text: `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: NAME}}`}
	create := func(name string) {
		harness.Apply(t, widget(group, ns, name))
		configMap.apply(t, ns, name)
	}
	for _, name := range []string{"old-1", "old-2"} {
		create(name)
	}
	var all []*runningCommand
	for _, name := range []string{"widgets." + group, "configmaps"} {
		for _, args := range [][]string{
			{"watch", "--diff"}, {"watch", "-o", "json"}, {"watch", "--where", "@.metadata.name", "-o",
				"name"}, {"dump", "-w"},
			{"dump", "-w", "-o", "wide", "--show-labels"},
		} {
			all = append(all, follow(t, harness.Crdcache(t), append(args, name, "-n", ns)...))
		}
	}
	before := map[*runningCommand]string{}
	for _, f := range all {
		f.await(t, "old-1")
		f.await(t, "old-2")
		before[f] = f.text()
	}
	harness.RestartAPIServer(t)
	create("new")
	for _, f := range all {
		f.await(t, "new")
	}
	create("latest") // its event comes after all listed objects
	for _, f := range all {
		f.await(t, "latest")
		if code := f.interrupt(t); code != 130 {
			t.Errorf("%q: exit code %d, stderr:\n%s", f.cmd.Args, code, f.errorText())
		}
		since, ok := strings.CutPrefix(f.text(), before[f])
		if !ok || strings.Count(since, "\n") != 2 {
			t.Errorf("%q prints\n%s\nand after the restart\n%s\nwant the new objects alone", f.cmd.Args,
				before[f], since)
		}
	}
}
