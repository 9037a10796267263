# Records a watch of all ConfigMaps with a deletion in the format $1.
kubectl get configmaps -A -w --output-watch-events -o "$1" >"watch.$1" &
until grep -q ADDED "watch.$1"; do sleep 0.1; done
kubectl --kubeconfig "$ADMIN" create configmap marker -n default
kubectl --kubeconfig "$ADMIN" delete configmap marker -n default
until grep -q DELETED "watch.$1"; do sleep 0.1; done
kill $!
