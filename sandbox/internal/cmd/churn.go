package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/sandbox/internal/filler"
)

type churnOptions struct {
	serverOptions
	filler.ChurnOptions
	size string
}

func newChurn() *cobra.Command {
	var o churnOptions
	c := &cobra.Command{
		Use:   "churn --dir DIR --type TYPE",
		Short: "Update, create and delete custom resources at a steady rate",
		Long: `Change objects of a custom resource through the API, and print a summary.

Nine operations in ten update an existing object: its status and an annotation in
turn. The rest are creates and deletes in equal parts. There must be objects to
begin with; see "sandbox fill". The exit code is 1 if any operation failed.`,
		Example: `  sandbox churn --dir /tmp/box --type certificates.cert-manager.io --rate 200 --duration 30s`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.serverOptions.addFlags(c)
	c.Flags().StringVar(&o.Type, "type", "", "name of the CRD, like certificates.cert-manager.io (required)")
	c.Flags().Float64Var(&o.Rate, "rate", 100, "operations per second")
	c.Flags().DurationVar(&o.Duration, "duration", 10*time.Second, "how long")
	c.Flags().StringVar(&o.size, "size", string(filler.Small), "size of created objects: small or large")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "determines which objects are chosen")
	if err := c.MarkFlagRequired("type"); err != nil {
		panic(err) // the flag was added above
	}
	return c
}

func (o *churnOptions) run(ctx context.Context) error {
	var err error
	if o.Size, err = filler.ParseSize(o.size); err != nil {
		return err
	}
	config, _, err := o.restConfig()
	if err != nil {
		return err
	}
	result, err := filler.Churn(ctx, config, o.ChurnOptions)
	if err != nil {
		return err
	}
	fmt.Println(result)
	if result.Errors > 0 {
		return fmt.Errorf("%d operations failed, one of them: %w", result.Errors, result.FirstError)
	}
	return nil
}
