#!/bin/sh
# Writes the pages and streams in this folder anew, each in both forms, from the API server of
# `cargo xtask controlplane up`, which should hold nothing else. The Nodes `n1`, `n2` and `leaving`, the ServiceCIDR
# `second` and the namespace `shop` are made there and stay.
set -eu
cd "$(dirname "$0")"
kubectl() { cargo --quiet xtask controlplane kubectl "$@"; }

kubectl delete namespace shop --ignore-not-found
kubectl apply -f objects.yaml
kubectl delete node leaving --wait=false
ingress='[{"ip":"203.0.113.1","ipMode":"VIP"},{"ip":"203.0.113.2","ipMode":"Proxy"},{"hostname":"lb.example.com"}]'
kubectl patch service everything -n shop --subresource=status --type=merge \
    -p "{\"status\":{\"loadBalancer\":{\"ingress\":$ingress}}}"

config=$(cargo --quiet xtask controlplane kubeconfig)
credentials=$(mktemp -d)
trap 'rm -r "$credentials"' EXIT
for name in certificate-authority client-certificate client-key; do
    sed -n "s/ *$name-data: //p" "$config" | base64 -d >"$credentials/$name"
done
server=$(sed -n 's/ *server: //p' "$config")

get() {
    curl -sS --cacert "$credentials/certificate-authority" --cert "$credentials/client-certificate" \
        --key "$credentials/client-key" -H "Accept: application/$1" "$server$2"
}
# The answer for a path in both forms, at the same time as far as may be.
both() {
    for accept in json vnd.kubernetes.protobuf; do
        get "$accept$3" "$2" >"$1.${accept##*.}"
    done
}

shop=/api/v1/namespaces/shop
both nodes /api/v1/nodes ""
both services "$shop/services?limit=2" ""
both slices /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices ""
both cidrs /apis/networking.k8s.io/v1/servicecidrs ""
both namespaces /api/v1/namespaces ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
both status $shop/services/nobody ""

list="watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
stream="$shop/services?$list&fieldSelector=metadata.name=plain&timeoutSeconds=10"
get json "$stream" >stream.json &
of_json=$!
get vnd.kubernetes.protobuf "$stream" >stream.protobuf &
of_protobuf=$!
sleep 1
kubectl label service plain -n shop a=b
kubectl delete service plain -n shop
wait $of_json
wait $of_protobuf
