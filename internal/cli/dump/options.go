package dump

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/output"
)

const (
	formatTable = "table"
	formatWide  = "wide"
)

var formats = []string{output.JSON, output.YAML, output.Name, formatTable, formatWide}

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	types             []string
	config            *rest.Config
	namespace         string // empty: all
	format            string
	noHeaders         bool
	showManagedFields bool
	timeout           time.Duration // 0: none
}

func (f *flags) toOptions(args []string, streams genericiooptions.IOStreams) (*options, error) {
	o := &options{
		IOStreams: streams, format: f.output, noHeaders: f.noHeaders,
		showManagedFields: f.showManagedFields, timeout: f.timeout,
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	var err error
	if o.types, err = splitTypes(args); err != nil {
		return nil, err
	}
	loader := f.config.ToRawKubeConfigLoader()
	if o.config, err = f.config.ToRESTConfig(); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Fairness is the server's business (API priority and fairness); a limit here only adds waiting.
	o.config.QPS = -1
	o.config.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	if !f.allNamespaces {
		if o.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
		}
	}
	return o, nil
}

func (f *flags) validate() error {
	if !slices.Contains(formats, f.output) {
		return exit.Usagef("there is no output format %q; use one of %s", f.output, strings.Join(formats, ", "))
	}
	if f.allNamespaces && *f.config.Namespace != "" {
		return exit.Usagef("--namespace and --all-namespaces exclude each other: give one of them")
	}
	if problems := validation.IsDNS1123Label(*f.config.Namespace); *f.config.Namespace != "" && len(problems) > 0 {
		return exit.Usagef("%q cannot be a namespace: %s", *f.config.Namespace, problems[0])
	}
	if _, err := clientcmd.ParseTimeout(*f.config.Timeout); err != nil {
		return exit.Usagef("--request-timeout is %q: use a duration like 30s or 2m; 0 waits without end", *f.config.Timeout)
	}
	if f.timeout < 0 {
		return exit.Usagef("--timeout is %v: it must not be negative; 0 waits without end", f.timeout)
	}
	return nil
}

// splitTypes takes types as separate arguments and with commas between them, without repetition.
func splitTypes(args []string) ([]string, error) {
	var types []string
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name == "" {
				return nil, exit.Usagef("%q has an empty type name", arg)
			}
			if strings.Contains(name, "/") {
				return nil, exit.Usagef("%q looks like TYPE/NAME: dump takes types and prints all their objects", name)
			}
			if _, err := discovery.ParseName(name); err != nil {
				return nil, exit.Usagef("%v", err)
			}
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	return types, nil
}
