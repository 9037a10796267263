package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// updateWorkers limits the concurrent requests.
const updateWorkers = 8

// updateObjects updates count objects once each, alternating between status and metadata. rate is the number
// of updates per second; zero means as fast as possible. It returns the time of each request by
// "namespace/name". There must be at least count objects. The first error ends it.
func updateObjects(ctx context.Context, client *rest.RESTClient, count int,
	rate float64) (map[string]time.Time, error) {
	keys, err := listKeys(ctx, client, count)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent struct {
		sync.Mutex
		times map[string]time.Time
	}
	sent.times = make(map[string]time.Time, count)
	work := make(chan int)
	var running sync.WaitGroup
	for range updateWorkers {
		running.Go(func() { // ends when work is closed
			for n := range work {
				now := time.Now()
				if err := patchObject(ctx, client, keys[n], n); err != nil {
					cancel(err)
					continue
				}
				sent.Lock()
				sent.times[keys[n].String()] = now
				sent.Unlock()
			}
		})
	}
	sendPaced(ctx, count, rate, work)
	close(work)
	running.Wait()
	return sent.times, context.Cause(ctx)
}

// sendPaced sends the numbers below count. Number n is due after n/rate seconds, so delays are compensated.
func sendPaced(ctx context.Context, count int, rate float64, work chan<- int) {
	start := time.Now()
	for n := range count {
		if rate > 0 && !sleep(ctx,
			time.Until(start.Add(time.Duration(float64(n)/rate*float64(time.Second))))) {
			return
		}
		select {
		case work <- n:
		case <-ctx.Done():
			return
		}
	}
}

// sleep returns false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	due := time.NewTimer(d)
	defer due.Stop()
	select {
	case <-due.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listKeys returns the names of count objects.
func listKeys(ctx context.Context, client *rest.RESTClient, count int) ([]types.NamespacedName, error) {
	answer, err := client.Get().AbsPath(certificatesPath).Param("limit", strconv.Itoa(count)).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("listing objects to change: %w", err)
	}
	var parsed struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return nil, err
	}
	if len(parsed.Items) < count {
		return nil, fmt.Errorf("%d objects are to be changed, and there are %d", count, len(parsed.Items))
	}
	keys := make([]types.NamespacedName, count)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: parsed.Items[i].Metadata.Namespace,
			Name: parsed.Items[i].Metadata.Name}
	}
	return keys, nil
}

func patchObject(ctx context.Context, client *rest.RESTClient, key types.NamespacedName, n int) error {
	// The timestamp guarantees a change, because an unchanged object causes no event.
	stamp := time.Now().UnixNano()
	path := []string{"/apis/cert-manager.io/v1/namespaces", key.Namespace, "certificates", key.Name}
	body := fmt.Sprintf(`{"metadata":{"annotations":{"platform.example.com/touched":"%d"}}}`, stamp)
	if n%2 == 0 {
		path = append(path, "status")
		body = fmt.Sprintf(`{"status":{"revision":%d}}`, stamp%1e9)
	}
	if err := client.Patch(types.MergePatchType).AbsPath(path...).Body([]byte(body)).Do(ctx).
		Error(); err != nil {
		return fmt.Errorf("changing %s: %w", key, err)
	}
	return nil
}

// latenciesOf returns the time between request and observation of each update.
func latenciesOf(sent, receivedAt map[string]time.Time) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, len(sent))
	for key, before := range sent {
		after, ok := receivedAt[key]
		if !ok {
			return nil, fmt.Errorf("the update of %s was not seen", key)
		}
		latencies = append(latencies, after.Sub(before))
	}
	return latencies, nil
}
