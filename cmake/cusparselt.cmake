# bench/gpu, where CUDA and NVIDIA's cuSPARSELt (0.9 or later, for its C header) are: -DLAC_CUSPARSELT=DIR names the
# folder that has its include and lib.
set(LAC_CUSPARSELT "" CACHE PATH "Folder of NVIDIA cuSPARSELt, for bench/gpu")
if(LAC_CUSPARSELT)
  find_package(CUDAToolkit REQUIRED)
  find_path(CUSPARSELT_INCLUDE cusparseLt.h REQUIRED HINTS ${LAC_CUSPARSELT}/include)
  find_library(CUSPARSELT_LIBRARY NAMES cusparseLt libcusparseLt.so.0 REQUIRED HINTS ${LAC_CUSPARSELT}/lib)
  file(GLOB GPU_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/gpu/*.c)
  add_executable(cusparselt_bench ${GPU_SOURCES})
  set_target_properties(cusparselt_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(cusparselt_bench PRIVATE bench src)
  target_include_directories(cusparselt_bench SYSTEM PRIVATE ${CUSPARSELT_INCLUDE})
  target_link_libraries(cusparselt_bench PRIVATE lacuna_warnings lacuna_internal PkgConfig::DEPS Threads::Threads m
    ${CUSPARSELT_LIBRARY} CUDA::cublasLt CUDA::cudart_static)
endif()
