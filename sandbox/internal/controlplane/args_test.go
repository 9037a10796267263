package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAsFlags(t *testing.T) {
	got := asFlags([]string{"a=1", "--b=2", "-c", "feature-gates=X=true"})
	want := []string{"--a=1", "--b=2", "-c", "--feature-gates=X=true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUserArgumentsComeLast(t *testing.T) {
	layout := Layout{Dir: "/box"}
	for name, args := range map[string][]string{
		"etcd":      etcdArgs(layout, 1, 2, []string{"user=1"}),
		"apiserver": apiServerArgs(layout, 1, 2, true, []string{"user=1"}),
	} {
		if args[len(args)-1] != "--user=1" {
			t.Errorf("%s: the user's argument cannot override ours: %v", name, args)
		}
	}
}

func TestEverythingIsOnLoopback(t *testing.T) {
	layout := Layout{Dir: "/box"}
	for _, arg := range append(etcdArgs(layout, 1, 2, nil), apiServerArgs(layout, 1, 2, false, nil)...) {
		name, value, _ := strings.Cut(arg, "=")
		isAddress := strings.Contains(name, "-urls") || strings.Contains(name, "-address") || name == "--etcd-servers"
		if isAddress && !strings.Contains(value, loopback) {
			t.Errorf("%s is not on loopback", arg)
		}
	}
}

func TestAuditLogIsOptional(t *testing.T) {
	has := func(audit bool) bool {
		return slices.ContainsFunc(apiServerArgs(Layout{Dir: "/box"}, 1, 2, audit, nil), func(arg string) bool {
			return strings.HasPrefix(arg, "--audit-log-path=")
		})
	}
	if !has(true) || has(false) {
		t.Errorf("with %v, without %v", has(true), has(false))
	}
}

func TestChildArgumentsRoundTrip(t *testing.T) {
	want := Child{Component: Etcd, RemoveDir: "", Args: []string{"--a=b", ""}}
	got, ok := ParseChild(append([]string{"sandbox"}, want.arguments()...))
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Error(ok, diff)
	}
	for _, args := range [][]string{nil, {"sandbox"}, {"sandbox", "up", "--dir", "x"}, {"sandbox", childMarker}} {
		if _, ok := ParseChild(args); ok {
			t.Errorf("%q is no component", args)
		}
	}
}

func TestChildEnvDropsEtcdConfiguration(t *testing.T) {
	got := childEnv([]string{"HOME=/", "ETCD_NAME=x", "ETCDCTL_API=3"})
	if diff := cmp.Diff([]string{"HOME=/", "ETCDCTL_API=3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseComponent(t *testing.T) {
	for _, want := range []Component{Etcd, APIServer} {
		if got, err := ParseComponent(string(want)); got != want || err != nil {
			t.Errorf("%q: %q, %v", want, got, err)
		}
	}
	if _, err := ParseComponent("kubelet"); err == nil {
		t.Error("kubelet was accepted")
	}
}
