package query

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Clusters answers queries over the clusters of a dynamicinformer.Group: it has the Querier of each, by
// name. The cluster is the first component of the order, of pages and of groups. References stay within a
// cluster, because each Querier has the graph of its own. Errors name the cluster. The methods are safe for
// concurrent use while the map is not changed.
type Clusters map[string]*Querier

// ClusterResult is the part of an answer that belongs to a cluster. Its own Continue is always empty.
type ClusterResult struct {
	Cluster string
	*Result
}

// Query returns the matching objects of each cluster, ordered by name of the cluster. Clusters without
// matching objects on the page are included, with their Freshness, up to the last one with objects.
// Options.Limit counts the objects of all clusters. next is the token of the next page, for
// Options.Continue; it is empty on the last page.
func (c Clusters) Query(ctx context.Context, query Query, options Options) (results []ClusterResult,
	next string, err error) {
	first, position, err := c.parseToken(options.Continue)
	if err != nil {
		return nil, "", err
	}
	limit, count := options.Limit, 0
	options.Continue = position
	for cluster, querier := range c.from(first) {
		isFull := limit > 0 && count == limit
		if options.Limit = limit - count; isFull || limit <= 0 {
			options.Limit = min(limit, 1) // after a full page: whether there are more objects
		}
		r, err := querier.Query(ctx, query, options)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("cluster %q: %w", cluster, err)
		case isFull && r.Len() > 0:
			return results, cluster + "/", nil
		case isFull:
			continue
		}
		next, r.Continue = r.Continue, ""
		results, count = append(results, ClusterResult{cluster, r}), count+r.Len()
		if next != "" {
			return results, cluster + "/" + next, nil
		}
		options.Continue = ""
	}
	return results, "", nil
}

// parseToken returns the cluster of a token, and the token of its Querier. The name of a cluster can have
// slashes.
func (c Clusters) parseToken(text string) (cluster, token string, err error) {
	if text == "" {
		return "", "", nil
	}
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return "", "", ErrContinue
	}
	cluster, token = text[:slash], text[slash+1:]
	if c[cluster] == nil { // it has left; the next one follows
		token = ""
	}
	return cluster, token, nil
}

// from returns the clusters from a name on, in order.
func (c Clusters) from(first string) iter.Seq2[string, *Querier] {
	return func(yield func(string, *Querier) bool) {
		for _, cluster := range slices.Sorted(maps.Keys(c)) {
			if cluster >= first && !yield(cluster, c[cluster]) {
				return
			}
		}
	}
}

// Count returns the number of matching objects of each cluster.
func (c Clusters) Count(ctx context.Context, query Query, options Options) (map[string]int, error) {
	counts := map[string]int{}
	for cluster, querier := range c.from("") {
		var err error
		if counts[cluster], err = querier.Count(ctx, query, options); err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster, err)
		}
	}
	return counts, nil
}

// Aggregate groups the matching objects by cluster and then as [Querier.Aggregate] does. The cluster is the
// first of Group.Values.
func (c Clusters) Aggregate(ctx context.Context, query Query, aggregation Aggregation,
	options Options) ([]Group, error) {
	var groups []Group
	for cluster, querier := range c.from("") {
		r, err := querier.Aggregate(ctx, query, aggregation, options)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster, err)
		}
		for _, g := range r.Groups {
			g.Values = slices.Insert(slices.Clone(g.Values), 0, cluster)
			groups = append(groups, g)
		}
	}
	return groups, nil
}
