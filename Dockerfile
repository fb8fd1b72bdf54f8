# Lacuna's command in an image: docker build -t lacuna . && docker run --rm -v "$PWD:/data" lacuna prune net.onnx -o net-24.onnx
FROM debian:12-slim AS build
COPY . /src
RUN cd /src && tools/setup build && cmake -S . -B /build -G Ninja -DLAC_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr && \
    cmake --build /build && DESTDIR=/out cmake --install /build
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libarchive13 libdnnl2 libgvc6 libjansson4 libjpeg62-turbo \
    libopenblas0-openmp libopenmpi3 libpcre2-8-0 libpng16-16 libprotobuf-c1 libwebp7 libxxhash0 libyaml-0-2 fonts-dejavu-core
COPY --from=build /out /
ENTRYPOINT ["lacuna"]
