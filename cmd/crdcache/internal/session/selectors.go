package session

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// SelectorFlags are the flags that limit which objects the server sends.
type SelectorFlags struct{ label, field string }

// Add adds them under kubectl's names.
func (f *SelectorFlags) Add(set *pflag.FlagSet) {
	set.StringVarP(&f.label, "selector", "l", "",
		"Read only objects whose labels match, as in 'app=web,tier!=cache' or 'env in (prod,stage)'; the server applies it.")
	set.StringVar(&f.field, "field-selector", "",
		"Read only objects whose fields match, as in 'metadata.name=web'; the server applies it and knows few fields.")
}

// Apply parses the selectors into options.
func (f *SelectorFlags) Apply(options *dynamicinformer.ResourceOptions) error {
	if f.label != "" {
		selector, err := labels.Parse(f.label)
		if err != nil {
			return exit.Usagef("--selector (-l): %v", err)
		}
		options.LabelSelector = selector
	}
	if f.field != "" {
		selector, err := fields.ParseSelector(f.field)
		if err != nil {
			return exit.Usagef("--field-selector: %v", err)
		}
		options.FieldSelector = selector
	}
	return nil
}
