#!/usr/bin/env bash
# client-go v0.37.2: one would expect that the recorder of events.k8s.io stores each message as the old recorder does, because
# controller-runtime offers it in its place as GetEventRecorder. It does not compare the note: an event with the same object, type, reason
# and action counts as a repetition of the first one, and its note is dropped. Four hosts that do not answer become one event that names
# the first host. Its count is 2, because further repetitions are written at the next refresh only. The old recorder stores four events.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// waitForWrites returns the verbs of the requests as soon as there are n.
func waitForWrites(client *fake.Clientset, n int) []string {
	var verbs []string
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		verbs = nil
		for _, action := range client.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		return len(verbs) >= n, nil
	})
	if err != nil {
		panic(err)
	}
	return verbs
}

func main() {
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}

	client := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		panic(err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "controller")
	for host := 1; host <= 4; host++ {
		recorder.Eventf(pod, nil, "Warning", "Unreachable", "Connect", "host %d does not answer", host)
		waitForWrites(client, min(host, 2))
	}
	recorder.Eventf(pod, nil, "Normal", "Done", "Connect", "all hosts were tried")
	fmt.Println("events.k8s.io:", waitForWrites(client, 3))
	list, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, event := range list.Items {
		count := int32(1)
		if event.Series != nil {
			count = event.Series.Count
		}
		fmt.Println(" ", event.Note, count)
	}

	client = fake.NewClientset()
	old := record.NewBroadcaster()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	oldRecorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "controller"})
	for host := 1; host <= 4; host++ {
		oldRecorder.Eventf(pod, "Warning", "Unreachable", "host %d does not answer", host)
	}
	fmt.Println("core:", waitForWrites(client, 4))
	oldList, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	var lines []string
	for _, event := range oldList.Items {
		lines = append(lines, fmt.Sprintln(" ", event.Message, event.Count))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Print(line)
	}
}
END
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
events.k8s.io: [create patch create]
  host 1 does not answer 2
  all hosts were tried 1
core: [create create create create]
  host 1 does not answer 1
  host 2 does not answer 1
  host 3 does not answer 1
  host 4 does not answer 1
END
