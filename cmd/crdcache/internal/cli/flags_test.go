package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

var rewriteFlags = flag.Bool("rewrite-flags", false,
	"write which flags the commands take together into testdata/flags")

const flagObjects = `
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: a, namespace: web, labels: {app: shop}}
spec: {color: red, size: 1}
---
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: b, namespace: web, labels: {app: shop}}
spec: {color: red, size: 2}
`

var objectFormats = []string{
	"table", "wide", "name", "json", "yaml", "kyaml", "jsonl", "csv", "custom-columns=N:.metadata.name",
	"jsonpath={.metadata.name}", "go-template={{.metadata.name}}",
}

// flagCase is a verb with the tested values of its flags. Flags without values must be boolean.
type flagCase struct {
	args             []string
	values           map[string][]string
	flagsWithoutFrom []string
	// requiredFlags maps a flag to the flags that it needs.
	requiredFlags map[string][]string
	// endlessFlag is the flag that makes the command run until it is interrupted. It is "" for commands that
	// always do.
	endlessFlag string
}

// commandFlagCases are all verbs by name. DIR is replaced by the directory of the input files.
var commandFlagCases = map[string]flagCase{
	"dump": {args: []string{"gizmos", "--from=-"},
		values: withReadFlags(map[string][]string{"output": objectFormats, "label-columns": {"app"},
			"sort-by": {".metadata.name"}, "cache": {"none"}}), endlessFlag: "--watch"},
	"watch": {
		args: []string{"gizmos", "--from=-"},
		values: withReadFlags(withQueryFlags(map[string][]string{"output": objectFormats,
			"label-columns": {"app"},
			"color":         {"always", "never"}, "cache": {"none"}})),
	},
	"query": {
		args: []string{"gizmos", "--from=-", "--config=DIR/config.yaml"},
		values: withReadFlags(withQueryFlags(map[string][]string{
			"output": objectFormats, "label-columns": {"app"}, "sort-by": {"size"}, "limit": {"1"},
			"continue": {"TOKEN"}, "group-by": {"color"},
			"compute": {"sum(size)"}, "dangling": {"owners"}, "cache": {"none"},
		})),
		endlessFlag: "none",
	},
	"serve": {
		args: []string{"gizmos", "--from=-", "--web"}, values: withReadFlags(map[string][]string{"idle": {"1m"},
			"web-address": {"127.0.0.1:0"}, "metrics-address": {"127.0.0.1:0"},
			"write-kubeconfig": {"DIR/kubeconfig"}}),
	},
	"stats": {args: []string{"gizmos", "--from=-"},
		values: withReadFlags(map[string][]string{"output": {"text", "json"}, "storage": {"metadata"}, "top": {"3"},
			"limit": {"5"}, "cache": {"none"}}), endlessFlag: "none"},
	"tree": {
		args: []string{"gizmo/a", "--from=-"}, values: withReadFlags(map[string][]string{"output": {"table", "json",
			"yaml"}, "types": {"gizmos"}, "depth": {"2"}, "limit": {"1"}, "cache": {"none"}}),
		endlessFlag: "none",
	},
	"resources": {args: []string{"--from=-"},
		values: withReadFlags(map[string][]string{"output": {"table", "wide", "name", "json",
			"yaml"}}), endlessFlag: "none"},
	"serve status": {args: []string{"--server=http://127.0.0.1:1"},
		values: withReadFlags(map[string][]string{"from": {"DIR"}}), endlessFlag: "none"},
	"serve stop": {args: []string{"--server=http://127.0.0.1:1"},
		values: withReadFlags(map[string][]string{"from": {"DIR"}}), endlessFlag: "none"},
	"snapshot save": {
		args: []string{"DIR/saved.snapshot", "gizmos",
			"--from=-"}, values: withReadFlags(map[string][]string{"redact-config": {"DIR/redact.yaml"}}),
		endlessFlag: "none",
	},
	"snapshot info": {args: []string{"DIR/gizmos.snapshot"},
		values: map[string][]string{"output": {"text", "json", "yaml"}}, endlessFlag: "none"},
	"diff": {
		args: []string{"DIR/gizmos.snapshot", "-", "gizmos"},
		values: withReadFlags(map[string][]string{"output": {"text", "json", "yaml"}, "ignore": {"status"},
			"color": {"always", "never"}}),
		endlessFlag: "none",
	},
	"suggest": {
		args: []string{"workloads",
			"--from=" + demoCRDs}, values: withReadFlags(map[string][]string{"crds": {demoCRDs}}),
		flagsWithoutFrom: []string{"--crds"}, endlessFlag: "none",
	},
	"validate": {
		args: []string{demoConfig}, values: withReadFlags(map[string][]string{"output": {"text", "json"},
			"crds": {demoCRDs}, "from": {demoCRDs}}),
		requiredFlags: map[string][]string{"--live": {"--from=" + demoCRDs},
			"--timeout": {"--live", "--from=" + demoCRDs}}, endlessFlag: "none",
	},
	"import kube-state-metrics": {args: []string{"DIR/object.yaml"}, endlessFlag: "none"},
	"version":                   {values: map[string][]string{"output": {"text", "json", "yaml"}}, endlessFlag: "none"},
}

// withReadFlags adds values for the flags of verbs that read a cluster or files.
func withReadFlags(values map[string][]string) map[string][]string {
	for name, value := range map[string]string{
		"namespace": "web", "selector": "app", "field-selector": "metadata.name=a", "timeout": "1m",
		"config": "DIR/config.yaml",
	} {
		values[name] = []string{value}
	}
	return values
}

func withQueryFlags(values map[string][]string) map[string][]string {
	values["index"], values["not"] = []string{"color=red"}, []string{"color=blue"}
	values["missing"], values["where"] = []string{"size"}, []string{".spec.size"}
	values["where-cel"] = []string{"self.spec.size > 1"}
	return values
}

// TestFlagPairs runs each pair of flags of each verb. The results are in testdata/flags. Review them for
// accepted pairs in which one flag has no effect.
func TestFlagPairs(t *testing.T) {
	if os.Getenv("CRDCACHE_NIGHTLY") == "" && !*rewriteFlags {
		t.Skip("runs in make nightly")
	}
	hideSettings(t)
	t.Setenv("NO_COLOR", "")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml": gizmoIndexes, "object.yaml": flagObjects,
		"redact.yaml": "redact: [{type: gizmos, paths: [.spec.color]}]",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	crdcache(t, "snapshot", "save", filepath.Join(dir, "gizmos.snapshot"), "gizmos", "--from",
		filepath.Join(dir, "object.yaml")).expect(t, cli.ExitOK, "")
	for _, cmd := range allCommands(cli.Command()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "crdcache ")
		verb, ok := commandFlagCases[name]
		if !ok {
			if !strings.HasPrefix(name, "completion") && !slices.Contains([]string{"help", "options", "mcp"}, name) &&
				!cmd.HasSubCommands() {
				t.Errorf("commandFlagCases has no values for the flags of %s", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := verb.pairTable(t, name, verb.flagSettings(t, cmd.LocalFlags()), dir)
			golden := filepath.Join("testdata", "flags", strings.ReplaceAll(name, " ", "-")+".txt")
			if *rewriteFlags {
				must(t, os.WriteFile(golden, []byte(got), 0o644))
				return
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("read it, then write it with -rewrite-flags (-want +got):\n%s", diff)
			}
		})
	}
}

// clusterFlags are kubectl's flags for the cluster and the namespace, and those for several clusters.
func clusterFlags() *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(set)
	if set.Lookup("proxy-url") == nil { // a flag of kubectl 1.37 that cli-runtime 0.35 does not have
		set.String("proxy-url", "", "")
	}
	set.StringSlice("contexts", nil, "")
	set.Bool("all-contexts", false, "")
	return set
}

// TestListFlags verifies that each flag with a list takes the lines of the output of a command.
func TestListFlags(t *testing.T) {
	for _, cmd := range cli.Command().Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "stringSlice" {
				return
			}
			err := f.Value.Set("a,b\r\nc\n\nd\n")
			got, _ := cmd.Flags().GetStringSlice(f.Name)
			if want := []string{"a", "b", "c", "d"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s --%s = %q, %v, want %q", cmd.Name(), f.Name, got, err, want)
			}
		})
	}
}

// TestFilesNeedNoCluster checks that cluster flags exclude --from.
func TestFilesNeedNoCluster(t *testing.T) {
	for _, cmd := range cli.Command().Commands() {
		if cmd.Flags().Lookup("from") == nil {
			continue
		}
		hasLiveFlag := cmd.Flags().Lookup("live") != nil
		clusterFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "namespace" || cmd.Flags().Lookup(f.Name) == nil {
				return
			}
			value := map[string]string{"bool": "true", "string": "1s", "stringArray": "a=b", "stringSlice": "a"}[f.Value.Type()]
			args := []string{cmd.Name(), "--" + f.Name + "=" + value, "--from=-"}
			switch cmd.Name() {
			case "resources", "mcp":
			case "tree":
				args = append(args, "gizmo/a")
			case "serve":
				args = append(args, "--web")
			default:
				args = append(args, "gizmos") // validate fails before it opens the file
			}
			if hasLiveFlag {
				args = append(args, "--live")
			}
			r := crdcache(t, args...)
			want := "--from and --" + f.Name + " cannot be used together: files need no cluster"
			if cmd.Name() == "mcp" {
				want = "--from - cannot be used here: standard input has the questions"
			}
			if r.code != cli.ExitUsage || r.out != "" || r.errOut != "error: "+want+"\n" {
				t.Errorf("%q: exit code %d, stdout %q, stderr %q, want %s", args, r.code, r.out,
					r.errOut, want)
			}
		})
	}
}

func (v flagCase) flagSettings(t *testing.T, flags *pflag.FlagSet) []string {
	cluster := clusterFlags()
	var settings []string
	flags.VisitAll(func(f *pflag.Flag) {
		values := v.values[f.Name]
		switch {
		case f.Name == "help" || f.Name != "namespace" && cluster.Lookup(f.Name) != nil:
		case f.Name == "from" && values == nil: // v.args has this flag
		case f.Value.Type() == "bool":
			settings = append(settings, "--"+f.Name)
		case len(values) == 0:
			t.Errorf("commandFlagCases has no value for --%s", f.Name)
		default:
			for _, value := range values {
				settings = append(settings, "--"+f.Name+"="+value)
			}
		}
	})
	return settings
}

// pairTable returns the result of each setting alone and with each other.
func (v flagCase) pairTable(t *testing.T, name string, settings []string, dir string) string {
	token := ""
	if name == "query" {
		token = flagToken(t, dir)
	}
	outcomes := map[[2]string]string{}
	var text strings.Builder
	for _, setting := range settings {
		fmt.Fprintf(&text, "%s: %s\n", strings.Join(v.argsWith(setting), " "), v.runPair(t, dir, token, name, setting))
		var lines []string
		settingsOf := map[string][]string{}
		for _, other := range settings {
			if settingName(setting) == settingName(other) {
				continue
			}
			verdict, known := outcomes[[2]string{other, setting}]
			if !known {
				verdict = v.runPair(t, dir, token, name, setting, other)
				outcomes[[2]string{setting, other}] = verdict
			}
			if settingsOf[verdict] == nil {
				lines = append(lines, verdict)
			}
			settingsOf[verdict] = append(settingsOf[verdict], other)
		}
		for _, verdict := range lines {
			fmt.Fprintf(&text, "    %s\n        %s\n", verdict, strings.Join(settingsOf[verdict], " "))
		}
	}
	return text.String()
}

// argsWith adds the flags that a setting requires.
func (v flagCase) argsWith(setting string) []string {
	return append([]string{setting}, v.requiredFlags[settingName(setting)]...)
}

// flagToken returns a continue token after the first object.
func flagToken(t *testing.T, dir string) string {
	var out, errOut bytes.Buffer
	code := cli.Main(t.Context(), []string{"crdcache", "query", "gizmos", "--from",
		filepath.Join(dir, "object.yaml"), "--limit=1"}, nil, &out, &errOut)
	_, token, ok := strings.Cut(errOut.String(), "--continue ")
	if code != cli.ExitOK || !ok {
		t.Fatalf("exit code %d, want %d; stderr %s", code, cli.ExitOK, errOut.String())
	}
	return strings.TrimSpace(token)
}

func settingName(setting string) string {
	name, _, _ := strings.Cut(setting, "=")
	return name
}

// runPair returns "ok" or the first line of the error of a command line. An endless command is accepted when
// it reads objects, after the validation of its flags.
func (v flagCase) runPair(t *testing.T, dir, token, name string, settings ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := append([]string{"crdcache"}, strings.Fields(name)...)
	isEndless, readsFiles := v.endlessFlag == "", true
	for _, setting := range settings {
		isEndless = isEndless || settingName(setting) == v.endlessFlag
		readsFiles = readsFiles && !slices.Contains(v.flagsWithoutFrom, settingName(setting))
	}
	given := slices.Clone(v.args)
	for _, setting := range settings {
		given = append(given, v.argsWith(setting)...)
	}
	for _, arg := range given {
		if readsFiles || settingName(arg) != "--from" {
			args = append(args, strings.NewReplacer("DIR", dir, "TOKEN", token).Replace(arg))
		}
	}
	var in io.Reader = strings.NewReader(flagObjects)
	if isEndless {
		in = readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF })
	}
	var out, errOut bytes.Buffer
	code := cli.Main(ctx, args, in, &out, &errOut)
	_, message, _ := strings.Cut("\n"+strings.ReplaceAll(errOut.String(), dir, "DIR"), "\nerror: ")
	message, _, _ = strings.Cut(message, "\n")
	switch {
	// the version command sent a request
	case code == cli.ExitFailed && strings.HasPrefix(message, "cannot reach the API server"):
		return "accepted"
	case code == cli.ExitOK, code == cli.ExitInterrupted && isEndless:
		return "accepted"
	case code == cli.ExitUsage && out.Len() == 0:
		return message
	}
	return fmt.Sprintf("exit code %d: %s", code, message)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
