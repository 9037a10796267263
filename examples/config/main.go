// Command config caches all types that an index config selects, and answers queries of its indexes.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: config INDEXES.YAML < QUERIES")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), config, os.Args[1], os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run caches the types of the config in a file, and answers one query for each line of queries, in the form
// "RESOURCE QUERY", such as "workloads tier=critical".
func run(ctx context.Context, config *rest.Config, file string, queries io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	indexConfig, err := indexers.Load(file)
	if err != nil {
		return err // all errors, with positions and remedies
	}
	binding, err := bind.Run(ctx, config, indexConfig) // binds types that are installed later, too
	if err != nil {
		return err
	}
	for _, target := range binding.Targets() {
		fmt.Fprintf(out, "%s: %d objects of %s\n", target.Resource.Name, len(target.Informer.GetStore().ListKeys()),
			target.GVR.GroupResource())
	}

	lines := bufio.NewScanner(queries)
	for lines.Scan() {
		if err := answer(ctx, binding, lines.Text(), out); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	return lines.Err()
}

func answer(ctx context.Context, binding *bind.Binding, line string, out io.Writer) error {
	resource, text, _ := strings.Cut(line, " ")
	querier, err := binding.Querier(resource)
	if err != nil {
		return err
	}
	parsed, err := query.Parse(text)
	if err != nil {
		return err
	}
	result, err := querier.Query(ctx, parsed, query.Options{SortBy: "name"})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", line, strings.Join(result.Keys(), " "))
	return nil
}
